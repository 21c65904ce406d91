/** Repair in streams whose client and node speak the same dialect. Events that need none keep their bytes. */
import { concat, decode, encode } from '../bytes'
import type { Json } from '../json/values'
import { parseReply } from '../json/values'
import { endOfEvent } from '../relay/gate'
import { createSseFramer } from '../sse'
import type { Repair } from './repair'
import { maxHeldBytes } from './repair'

/** Text of the arguments of one call, which are counted from 0, in an event. */
export interface Piece {
  readonly call: number
  readonly text: string
}

/** What an event says of calls. */
export interface CallNews {
  readonly pieces: readonly Piece[]
  /** The event with another text for each of its pieces. */
  readonly rewrite?: (texts: readonly string[]) => Json
  /** The tools of calls that begin here. */
  readonly named?: readonly (readonly [call: number, tool: string])[]
  /** Nothing more will be said of the calls until here; `cut`: they ended before they were whole. */
  readonly ends?: 'whole' | 'cut'
  /** Calls of this stream cannot be told apart. */
  readonly isUnclear?: true
}

/** Reads the events of a stream in order, each parsed. */
export type CallReader = (event: Json) => CallNews

interface HeldEvent {
  readonly bytes: Uint8Array
  readonly news: CallNews
}

const nothing: CallNews = { pieces: [] }

/** `[DONE]`. */
const done: CallNews = { pieces: [], ends: 'whole' }

/** The event's other lines stay. */
const withData = (event: Uint8Array, json: Json): Uint8Array => {
  const others = decode(event)
    .split(/\r?\n/)
    .filter((line) => line !== '' && !line.startsWith('data:'))
  return encode([...others, `data: ${JSON.stringify(json)}`, '', ''].join('\n'))
}

/** Undefined for signs of life. */
const dataOf = (event: Uint8Array): string | undefined => {
  const framer = createSseFramer()
  const [frame] = [...framer.push(event), ...framer.end()]
  return frame?.event === 'ping' ? undefined : frame?.data
}

/** The texts of the calls that had to be repaired. */
const repairedTexts = (
  pieces: readonly Piece[],
  tools: ReadonlyMap<number, string>,
  repair: Repair,
): ReadonlyMap<number, string> => {
  const texts = new Map<number, string>()
  for (const { call, text } of pieces) texts.set(call, (texts.get(call) ?? '') + text)
  const repaired = new Map<number, string>()
  for (const [call, text] of texts) {
    const whole = repair.apply(tools.get(call) ?? '', text)
    if (whole !== text) repaired.set(call, whole)
  }
  return repaired
}

/** All of a repaired call goes into its first piece; its others become empty. */
const rewritten = (held: readonly HeldEvent[], repaired: ReadonlyMap<number, string>): Uint8Array[] => {
  const told = new Set<number>()
  const textOf = ({ call, text }: Piece): string => {
    const whole = repaired.get(call)
    if (whole === undefined) return text
    const isFirst = !told.has(call)
    told.add(call)
    return isFirst ? whole : ''
  }
  return held.map(({ bytes, news: { pieces, rewrite } }) =>
    rewrite && pieces.some(({ call }) => repaired.has(call)) ? withData(bytes, rewrite(pieces.map(textOf))) : bytes,
  )
}

export interface RecordRepairer {
  /** Gets whole events in order, and returns what goes on. */
  push(events: Uint8Array): Uint8Array
  /** What is still held of an answer that has ended, as it was. */
  end(): Uint8Array
}

/**
 * From the first piece of a call on, events are held until the calls are whole, then told with their arguments repaired,
 * or as they were. Signs of life pass at once.
 */
export const createRecordRepairer = (read: CallReader, repair: Repair): RecordRepairer => {
  const tools = new Map<number, string>()
  let held: HeldEvent[] = []
  let length = 0
  let gaveUp = false

  const release = (repairs: boolean): Uint8Array[] => {
    const events = held
    held = []
    length = 0
    if (!repairs) return events.map(({ bytes }) => bytes)
    const pieces = events.flatMap(({ news }) => news.pieces)
    return rewritten(events, repairedTexts(pieces, tools, repair))
  }

  const hold = (event: HeldEvent): Uint8Array[] => {
    held.push(event)
    length += event.bytes.length
    gaveUp = length > maxHeldBytes
    return gaveUp ? release(false) : []
  }

  const take = (bytes: Uint8Array): Uint8Array[] => {
    const data = gaveUp ? undefined : dataOf(bytes)
    if (data === undefined) return [bytes]
    const json = parseReply(data)
    const news = json ? read(json) : data === '[DONE]' ? done : nothing
    for (const [call, tool] of news.named ?? []) tools.set(call, tool)
    gaveUp ||= news.isUnclear === true
    const { pieces, ends } = news
    if (gaveUp) return [...release(false), bytes]
    if (pieces.length > 0) return [...hold({ bytes, news }), ...(ends ? release(ends === 'whole') : [])]
    if (ends) return [...release(ends === 'whole'), bytes]
    return held.length > 0 ? hold({ bytes, news }) : [bytes]
  }

  return {
    push(events) {
      const out: Uint8Array[] = []
      for (let start = 0, end = 0; start < events.length; start = end) {
        end = endOfEvent(events, start)
        out.push(...take(events.subarray(start, end)))
      }
      return concat(out)
    },
    end: () => concat(release(false)),
  }
}
