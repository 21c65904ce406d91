/** A stream whose client and node speak the same dialect: the chunks go on as they are, their end is remembered. */
import { concat, decode, encode, find, splice, startsWithAt } from '../bytes'
import type { ReplyTransform, Usage } from '../exchange'
import type { Json } from '../json/values'
import { parseReply } from '../json/values'
import type { Frame, Framer } from '../lines'
import { createNdjsonFramer } from '../ndjson'
import { readAnthropicCalls } from '../repair/anthropic-calls'
import type { Repair } from '../repair/repair'
import { createOpenAiCallReader } from '../repair/openai-calls'
import type { CallReader } from '../repair/records'
import { createRecordRepairer } from '../repair/records'
import { errorOf } from '../replies'
import { createSseFramer } from '../sse'
import { createAnthropicForm } from './anthropic-form'
import { anthropicStart, anthropicUsage, readAnthropicEnd } from './anthropic-tail'
import { afterLastEvent, afterLastLine, createGate, endOfEvent } from './gate'
import { readOllamaEnd } from './ollama-tail'
import { createOpenAiOpening } from './openai-form'
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
  /** The engine may leave the role out of the first piece. */
  readonly omitsRole?: boolean
  /** Calls of tools are to be repaired. */
  readonly repair?: Repair | undefined
}

interface StreamKind {
  readonly contentType: string
  readonly framer: () => Framer
  readonly boundary: (bytes: Uint8Array) => number
  readonly readEnd: (tail: string) => StreamEnd
  /** Where the first event tells the model and, in some dialects, what the prompt cost; default: at its top. */
  readonly startOf?: (first: Json) => Json
  readonly readStart?: (start: Json) => Usage
  /** Puts whole events into the protocol's form, where engines are known not to keep to it. */
  readonly form?: () => (events: Uint8Array) => Uint8Array
  /** How calls of tools look; absent where their arguments are objects and cannot be broken. */
  readonly calls?: () => CallReader
}

const sse: StreamKind = {
  contentType: 'text/event-stream',
  framer: createSseFramer,
  boundary: afterLastEvent,
  readEnd: readOpenAiEnd,
  calls: createOpenAiCallReader,
}

const anthropicEvents: StreamKind = {
  contentType: 'text/event-stream',
  framer: createSseFramer,
  boundary: afterLastEvent,
  readEnd: readAnthropicEnd,
  startOf: anthropicStart,
  readStart: ({ usage }) => anthropicUsage(usage),
  form: createAnthropicForm,
  calls: () => readAnthropicCalls,
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
  /** What the first event tells of the usage. */
  usage(): Usage
}

/** Keep-alives may come before the answer does. */
const isTelling = ({ event }: Frame): boolean => event !== 'ping'

/** The first event decides whether this is an answer at all; it is the only one that is parsed. */
const createHead = ({ framer: createFramer, startOf = (first) => first, readStart }: StreamKind): Head => {
  const framer = createFramer()
  let pieces: Uint8Array[] | undefined = []
  let length = 0
  let begun = false
  let problem: ReturnType<Head['problem']>
  let model: string | undefined
  let usage: Usage = {}

  const judge = (json: Json | undefined, isEvent: boolean): void => {
    problem = errorOf(json ?? {})
    begun = problem === undefined && isEvent
    const start = startOf(json ?? {})
    if (typeof start.model === 'string') model = start.model
    usage = readStart?.(start) ?? {}
    if (begun || problem) pieces = undefined
  }

  const judgeFrame = ({ data, event }: Frame): void => {
    const json = parseReply(data)
    judge(event === 'error' && json && !errorOf(json) ? { error: json } : json, true)
  }

  return {
    look(chunk) {
      if (pieces === undefined || problem) return
      pieces.push(chunk)
      length += chunk.length
      const first = framer.push(chunk).find(isTelling)
      if (first) judgeFrame(first)
      else if (length > maxHeadBytes) judge(undefined, true)
    },
    close() {
      if (pieces === undefined || problem) return
      const first = framer.end().find(isTelling)
      if (first) judgeFrame(first)
      else judge(parseReply(decode(concat(pieces))), false)
    },
    begun: () => begun,
    problem: () => problem,
    model: () => model,
    usage: () => usage,
  }
}

const emptyChoices = encode('"choices":[]')
const emptyChoicesSpaced = encode('"choices": []')
const usageMember = encode('"usage":')
const nothing = encode('null')

const hasUsage = (event: Uint8Array): boolean => {
  const at = find(event, usageMember)
  if (at < 0) return false
  const value = event[at + usageMember.length] === 0x20 ? at + usageMember.length + 1 : at + usageMember.length
  return !startsWithAt(event, nothing, value)
}

/** Without arrays in between: it looks at every piece of a stream. */
const nextEmptyChoices = (events: Uint8Array, from: number): number => {
  const dense = find(events, emptyChoices, from)
  const spaced = find(events, emptyChoicesSpaced, from)
  return dense >= 0 && spaced >= 0 ? Math.min(dense, spaced) : Math.max(dense, spaced)
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

const relayStream = (
  kind: StreamKind,
  { asked, model, dropUsage, omitsRole, repair }: RelayOptions,
): ReplyTransform => {
  const tail = createTail()
  const head = createHead(kind)
  const renames = asked !== model
  const repairer = repair && kind.calls && createRecordRepairer(kind.calls(), repair)
  const form = kind.form?.()
  const opening = omitsRole ? createOpenAiOpening() : undefined
  let rename: ((events: Uint8Array) => Uint8Array) | undefined

  const renamed = (events: Uint8Array): Uint8Array => {
    // Some nodes answer under yet another name (a file's path): the first event told it.
    rename ??= createRenamer([model, ...(head.model() === undefined ? [] : [String(head.model())])], asked)
    return rename(events)
  }

  const edit = (events: Uint8Array): Uint8Array | undefined => {
    const opened = opening ? opening.edit(events) : events
    const formed = form ? form(opened) : opened
    const kept = dropUsage ? withoutUsage(formed) : formed
    if (kept.length === 0) return undefined
    const named = renames ? renamed(kept) : kept
    return repairer ? repairer.push(named) : named
  }
  const edits = renames || dropUsage || repairer !== undefined || form !== undefined
  const gate = edits || opening ? createGate(kind.boundary, edit) : undefined
  const passes = (): boolean => !edits && (opening === undefined || opening.over()) && !gate?.holds()
  const end = (): StreamEnd => kind.readEnd(tail.text())
  const complete = (): boolean => head.begun() && end().complete

  return {
    contentType: kind.contentType,
    push(chunk) {
      tail.add(chunk)
      head.look(chunk)
      return gate === undefined || passes() ? chunk : gate.push(chunk)
    },
    end() {
      head.close()
      const rest = concat([gate?.end(), repairer?.end()].filter((piece) => piece !== undefined))
      // Half a record in front of the error that follows would only be one more that nobody can read.
      return complete() && rest.length > 0 ? rest : undefined
    },
    complete,
    problem: () => head.problem() ?? (head.begun() ? end().problem : undefined),
    begun: () => head.begun(),
    usage: () => ({ ...head.usage(), ...end().usage, ...repair?.usage() }),
  }
}

export const relayOpenAiStream = (options: RelayOptions): ReplyTransform => relayStream(sse, options)

export const relayAnthropicStream = (options: RelayOptions): ReplyTransform => relayStream(anthropicEvents, options)

export const relayOllamaStream = (options: RelayOptions): ReplyTransform => relayStream(ndjson, options)
