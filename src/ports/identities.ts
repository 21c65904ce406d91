/** Which weights a name stood for on which node. */
export interface Holding {
  /** Hash of the weights, lower-case hex. */
  readonly digest: string
  /** False once the node does not list the name any more. */
  readonly isListed: boolean
}

/** One name that nodes list, with all the weights that it was seen to stand for. */
export interface Lineage {
  /** As `modelKey` writes it. */
  readonly key: string
  /** The first keeps the name, the others are called `name-<number>`. `digest` is empty while it is not known. */
  readonly models: readonly { readonly number: number; readonly digest: string }[]
  /** Numbers that were given once and are now called by the other one. */
  readonly merged: readonly { readonly number: number; readonly into: number }[]
  /** By node. */
  readonly holders: Readonly<Record<string, Holding>>
}

/** Where identities outlive the process, so that a name never changes hands by the order in which nodes answer. */
export interface IdentityStore {
  /** Read once at start. */
  load(): readonly Lineage[]
  /** Takes a changed lineage; must not block. */
  save(lineage: Lineage): void
}
