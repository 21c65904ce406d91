/** The same shape while it is being built. Filling in what is known is cheaper than spreading what might be. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] }
