/** A stream whose client and node speak the same dialect: the chunks go on as they are, their end is remembered. */
import { concat, decode, encode, find, splice, startsWithAt } from '../bytes'
import type { ReplyTransform } from '../exchange'
import type { Json } from '../json/values'
import { parseReply } from '../json/values'
import type { Framer } from '../lines'
import { createNdjsonFramer } from '../ndjson'
import { errorOf } from '../replies'
import { createSseFramer } from '../sse'
import { afterLastEvent, afterLastLine, createGate, endOfEvent } from './gate'
import { readOllamaEnd } from './ollama-tail'
import type { StreamEnd } from './openai-tail'
import { readOpenAiEnd } from './openai-tail'
import { createRenamer } from './rename'
import { createTail } from './tail'

export interface RelayOptions {
  /** The model as the client wrote it, and as the node calls it. */
  readonly asked: string
  readonly model: string
  /** We asked for a usage chunk that the client does not expect. */
  readonly dropUsage: boolean
}

interface StreamKind {
  readonly contentType: string
  readonly framer: () => Framer
  readonly boundary: (bytes: Uint8Array) => number
  readonly readEnd: (tail: string) => StreamEnd
}

const sse: StreamKind = {
  contentType: 'text/event-stream',
  framer: createSseFramer,
  boundary: afterLastEvent,
  readEnd: readOpenAiEnd,
}

const ndjson: StreamKind = {
  contentType: 'application/x-ndjson',
  framer: createNdjsonFramer,
  boundary: afterLastLine,
  readEnd: readOllamaEnd,
}

/** An answer that has not begun within this is no stream of events. */
const maxHeadBytes = 65_536

interface Head {
  /** Looks at a chunk until the first event is whole. */
  look(chunk: Uint8Array): void
  /** Looks at what is left of an answer that ended before its first event. */
  close(): void
  begun(): boolean
  problem(): { readonly message: string; readonly status?: number } | undefined
  /** The model as the node spells it in its own answers. */
  model(): string | undefined
}

/** The first event decides whether this is an answer at all; it is the only one that is parsed. */
const createHead = (framer: Framer): Head => {
  let pieces: Uint8Array[] | undefined = []
  let length = 0
  let begun = false
  let problem: ReturnType<Head['problem']>
  let model: string | undefined

  const judge = (json: Json | undefined, isEvent: boolean): void => {
    problem = errorOf(json ?? {})
    begun = problem === undefined && isEvent
    if (typeof json?.model === 'string') model = json.model
    if (begun || problem) pieces = undefined
  }

  const judgeFrame = ({ data, event }: { data: string; event?: string }): void => {
    const json = parseReply(data)
    judge(event === 'error' && json && !errorOf(json) ? { error: json } : json, true)
  }

  return {
    look(chunk) {
      if (pieces === undefined || problem) return
      pieces.push(chunk)
      length += chunk.length
      const [first] = framer.push(chunk)
      if (first) judgeFrame(first)
      else if (length > maxHeadBytes) judge(undefined, true)
    },
    close() {
      if (pieces === undefined || problem) return
      const [first] = framer.end()
      if (first) judgeFrame(first)
      else judge(parseReply(decode(concat(pieces))), false)
    },
    begun: () => begun,
    problem: () => problem,
    model: () => model,
  }
}

const emptyChoices = [encode('"choices":[]'), encode('"choices": []')]
const usageMember = encode('"usage":')
const nothing = encode('null')

const hasUsage = (event: Uint8Array): boolean => {
  const at = find(event, usageMember)
  if (at < 0) return false
  const value = event[at + usageMember.length] === 0x20 ? at + usageMember.length + 1 : at + usageMember.length
  return !startsWithAt(event, nothing, value)
}

const nextEmptyChoices = (events: Uint8Array, from: number): number => {
  const hits = emptyChoices.map((needle) => find(events, needle, from)).filter((at) => at >= 0)
  return hits.length > 0 ? Math.min(...hits) : -1
}

/** Cuts the event that only tells the usage out of whole events; others without choices stay. */
const withoutUsage = (events: Uint8Array): Uint8Array => {
  for (let at = nextEmptyChoices(events, 0); at >= 0; ) {
    const start = afterLastEvent(events.subarray(0, at))
    const end = endOfEvent(events, at)
    if (hasUsage(events.subarray(start, end))) return splice(events, [{ start, end, text: '' }])
    at = nextEmptyChoices(events, end)
  }
  return events
}

const relayStream = (kind: StreamKind, { asked, model, dropUsage }: RelayOptions): ReplyTransform => {
  const tail = createTail()
  const head = createHead(kind.framer())
  const renames = asked !== model
  let rename: ((events: Uint8Array) => Uint8Array) | undefined

  const edit = (events: Uint8Array): Uint8Array | undefined => {
    const kept = dropUsage ? withoutUsage(events) : events
    if (kept.length === 0) return undefined
    if (!renames) return kept
    // Some nodes answer under yet another name (a file's path): the first event told it.
    rename ??= createRenamer([model, ...(head.model() === undefined ? [] : [String(head.model())])], asked)
    return rename(kept)
  }
  const gate = renames || dropUsage ? createGate(kind.boundary, edit) : undefined
  const end = (): StreamEnd => kind.readEnd(tail.text())

  return {
    contentType: kind.contentType,
    push(chunk) {
      tail.add(chunk)
      head.look(chunk)
      return gate ? gate.push(chunk) : chunk
    },
    end() {
      head.close()
      return gate?.end()
    },
    complete: () => head.begun() && end().complete,
    problem: () => head.problem() ?? (head.begun() ? end().problem : undefined),
    begun: () => head.begun(),
    usage: () => end().usage,
  }
}

export const relayOpenAiStream = (options: RelayOptions): ReplyTransform => relayStream(sse, options)

export const relayOllamaStream = (options: RelayOptions): ReplyTransform => relayStream(ndjson, options)
