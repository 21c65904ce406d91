/**
 * The client's side of a relay: a byte stream that is filled only as fast as it is read. The queue of the stream itself
 * stays empty, so that a client that does not read costs one piece here and stops the node's socket behind it.
 */
export interface Outlet {
  readonly stream: ReadableStream<Uint8Array>
  /** The client waits for more. */
  isWanted(): boolean
  /** Resolves when the client waits for more, or is gone. */
  wanted(): Promise<void>
  write(bytes: Uint8Array): void
  /** The clean end. */
  end(): void
  /** Ends the transfer visibly broken. */
  abort(reason: string): void
}

export const createOutlet = (onCancel: () => void): Outlet => {
  let controller: ReadableStreamDefaultController<Uint8Array>
  let isWanted = false
  let isOver = false
  let wake: (() => void) | undefined

  const notify = (): void => {
    isWanted = true
    wake?.()
    wake = undefined
  }

  const stream = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
      },
      pull: notify,
      cancel() {
        isOver = true
        onCancel()
        notify()
      },
    },
    { highWaterMark: 0 },
  )

  return {
    stream,
    isWanted: () => isWanted,
    wanted: () =>
      new Promise((resolve) => {
        if (isWanted) resolve()
        else wake = resolve
      }),
    write(bytes) {
      if (isOver) return
      // Before enqueueing, which asks for the next piece at once when the client is already waiting for it.
      isWanted = false
      controller.enqueue(bytes)
    },
    end() {
      if (isOver) return
      isOver = true
      controller.close()
      notify()
    },
    abort(reason) {
      if (isOver) return
      isOver = true
      controller.error(new Error(reason))
      notify()
    },
  }
}
