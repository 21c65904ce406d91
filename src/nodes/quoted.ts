/**
 * Engines quote the request in their errors, and what they say is kept in records and logs, where no prompt belongs. The
 * client gets the engine's own words whatever is kept.
 */

/** From this length on a run of characters that also stands in the request is a quotation, not a coincidence. */
const QUOTE_LENGTH = 12
/** Every run of twice this length holds one such piece whole, so few searches find all of them. */
const PIECE_LENGTH = QUOTE_LENGTH / 2
/** Places at which one piece is looked up: common words stand in many. */
const MAX_PLACES = 16
/** A longer request is not searched: nothing that was said about it is kept. */
const MAX_BODY_BYTES = 1024 * 1024
const LEFT_OUT = '…'

interface Run {
  readonly start: number
  readonly end: number
}

/** The longest run around the piece at `at` that stands in the text, or undefined. */
const runAround = (message: string, at: number, text: string): Run | undefined => {
  const piece = message.slice(at, at + PIECE_LENGTH)
  let longest: Run | undefined
  let found = text.indexOf(piece)
  for (let place = 0; found >= 0 && place < MAX_PLACES; place++) {
    let before = 0
    while (before < at && before < found && message[at - before - 1] === text[found - before - 1]) before++
    let length = piece.length
    while (at + length < message.length && message[at + length] === text[found + length]) length++
    const run = { start: at - before, end: at + length }
    if (longest === undefined || run.end - run.start > longest.end - longest.start) longest = run
    found = text.indexOf(piece, found + 1)
  }
  return longest
}

/** Names of members, and of the model, are what an error is about. */
const isName = (run: string, text: string, names: readonly string[]): boolean => {
  const bare = run.replace(/^[\s"'`]+|[\s"'`:.,]+$/g, '')
  return names.some((name) => name.includes(bare)) || text.includes(`"${bare}":`) || text.includes(`"${bare}" :`)
}

/** The message without what it quotes from the request; undefined when that cannot be told. `names` may stay. */
export const withoutQuotes = (message: string, body: Uint8Array, names: readonly string[]): string | undefined => {
  if (body.length > MAX_BODY_BYTES) return undefined
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
  let kept = ''
  let from = 0
  for (let at = 0; at + PIECE_LENGTH <= message.length; at += PIECE_LENGTH) {
    if (at < from) continue
    const run = runAround(message, at, text)
    if (run === undefined || run.end - run.start < QUOTE_LENGTH) continue
    if (isName(message.slice(run.start, run.end), text, names)) continue
    kept += `${message.slice(from, Math.max(from, run.start))}${LEFT_OUT}`
    from = run.end
  }
  return kept + message.slice(from)
}
