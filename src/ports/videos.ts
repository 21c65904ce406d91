/** A video that was begun here, as it outlives the process. Its prompt is no part of it. */
export interface KeptVideo {
  /** Ours: two nodes may give the same one. */
  readonly id: string
  /** When it was begun, in ms since the epoch. */
  readonly begunAt: number
  readonly node: string
  readonly at: {
    /** The node's own id of it. */
    readonly id: string
    /** How its node was asked for it. */
    readonly dialect: string
    /** As the client called it. */
    readonly model: string
  }
  /** Whose it is, by the name of the key. */
  readonly key?: string
  /** OpenAI's object as the node last told it. */
  readonly state: Readonly<Record<string, unknown>>
  /** Why it failed, where that is the router's own word. */
  readonly fault?: { readonly code: string; readonly message: string }
}

/** Where videos outlive the process, so that their ids still lead to the nodes that have them. */
export interface VideoStore {
  /** Read once at start, the oldest first. */
  load(): readonly KeptVideo[]
  /** Takes what became of a video; must not block. */
  save(video: KeptVideo): void
  forget(id: string): void
}
