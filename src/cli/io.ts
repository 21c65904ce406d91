/** The outside world of a command. Results go to `out`, messages for people to `err`; texts bring their own newlines. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  out(text: string): void
  err(text: string): void
  /** Width of the terminal in characters. */
  readonly columns: number
  readonly isTty: boolean
}
