/** What changed in a table with one row a key: kept until the next batch writes it, the last word on each key. */
export const pendingRows = <V>(put: (key: string, value: V) => unknown, remove?: (key: string) => unknown) => {
  /** Undefined is to be deleted. */
  const pending = new Map<string, V | undefined>()

  return {
    /** Until the next `write`. */
    remember: (key: string, value: V | undefined): void => void pending.set(key, value),
    write: (): void => {
      for (const [key, value] of pending) {
        if (value === undefined) remove?.(key)
        else put(key, value)
      }
    },
    /** What was written is on disk. */
    forget: (): void => pending.clear(),
  }
}
