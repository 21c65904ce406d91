/**
 * Reads up to the first item that satisfies and leaves the rest unread, with the stream open: leaving a `for await`
 * loop would cancel it. Throws where the stream ends before.
 */
export const readUntil = async <T>(stream: AsyncIterable<T>, satisfied: (item: T) => boolean): Promise<T> => {
  const items = stream[Symbol.asyncIterator]()
  for (;;) {
    const { done, value } = await items.next()
    if (done) throw new Error('the stream ended before')
    if (satisfied(value)) return value
  }
}
