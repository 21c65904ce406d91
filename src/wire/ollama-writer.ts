/** Canonical events -> what an Ollama client reads from `/api/chat` or `/api/generate`, as lines or as one object. */
import { argumentsObject } from './calls'
import type { ReplyEvent } from './canonical'
import type { Timing } from './exchange'
import type { Json } from './json/values'
import { compact } from './json/values'
import type { Gathered, ReplyWriter } from './replies'
import { emptyAnswer, gather } from './replies'
import { nanoseconds, rfc3339 } from './time'

export interface OllamaAnswer {
  /** As the client asked for it. */
  readonly model: string
  readonly endpoint: 'chat' | 'generate'
  readonly timing: Timing
}

interface Said {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: readonly Json[]
}

const writeCalls = ({ calls }: Gathered): Json[] =>
  calls.map((call, index) => ({
    id: call.id,
    function: { index, name: call.name, arguments: argumentsObject(call.arguments) },
  }))

/** The part in which the two endpoints differ: a message, or `response` beside `thinking`. */
const writeSaid = (endpoint: OllamaAnswer['endpoint'], { text = '', reasoning, calls }: Said): Json => {
  const thinking = reasoning === '' ? undefined : reasoning
  if (endpoint === 'generate') return compact({ response: text, thinking })
  const held = calls === undefined || calls.length === 0 ? undefined : calls
  return { message: compact({ role: 'assistant', content: text, thinking, tool_calls: held }) }
}

const doneReason = (finish: Gathered['finish']): string => (finish === 'length' ? 'length' : 'stop')

/**
 * Engine times where the node tells them, else what was measured around the request. An answer in one piece shows no
 * first token: then all of its time counts as generating, which makes no rate look better than it was.
 */
const writeMetrics = ({ usage }: Gathered, timing: Timing, firstAt: number | undefined): Json => {
  const now = timing.now()
  const promptMs = usage?.times?.promptMs ?? (firstAt === undefined ? undefined : firstAt - timing.sentAt)
  const generateMs = usage?.times?.generateMs ?? now - (firstAt ?? timing.sentAt)
  return compact({
    total_duration: nanoseconds(timing.loadMs + now - timing.sentAt),
    load_duration: timing.loadMs > 0 ? nanoseconds(timing.loadMs) : undefined,
    prompt_eval_count: usage?.tokensIn,
    prompt_eval_duration: promptMs === undefined ? undefined : nanoseconds(promptMs),
    eval_count: usage?.tokensOut,
    eval_duration: nanoseconds(generateMs),
  })
}

/**
 * Shared by both forms. Tool calls come whole, one object each, so their fragments are held until the finish reason;
 * the last object waits for the usage, which OpenAI-speaking nodes send after the finish reason.
 */
const createOllamaWriter = ({ model, endpoint, timing }: OllamaAnswer, streams: boolean): ReplyWriter => {
  const whole = emptyAnswer()
  let callsWritten = false
  let firstAt = 0

  const line = (said: Said, rest: Json): string =>
    `${JSON.stringify({ model, created_at: rfc3339(timing.now()), ...writeSaid(endpoint, said), ...rest })}\n`

  const heldCalls = (): string => {
    if (callsWritten) return ''
    callsWritten = true
    return writeCalls(whole)
      .map((call) => line({ calls: [call] }, { done: false }))
      .join('')
  }

  const stream = (event: ReplyEvent): string => {
    if (event.type === 'text')
      return line({ text: event.text }, { ...(event.logprobs && { logprobs: event.logprobs }), done: false })
    if (event.type === 'reasoning') return line({ reasoning: event.text }, { done: false })
    return event.type === 'finish' ? heldCalls() : ''
  }

  const last = (said: Said): string =>
    line(said, {
      ...(!streams && whole.logprobs.length > 0 && { logprobs: whole.logprobs }),
      done: true,
      done_reason: doneReason(whole.finish),
      ...writeMetrics(whole, timing, streams ? timing.firstByteAt || firstAt : undefined),
    })

  return {
    write(event) {
      firstAt ||= timing.now()
      const out = streams ? stream(event) : ''
      gather(whole, event)
      return out
    },
    end: () => (streams ? heldCalls() + last({}) : last({ ...whole, calls: writeCalls(whole) }).trimEnd()),
  }
}

export const createOllamaStreamWriter = (answer: OllamaAnswer): ReplyWriter => createOllamaWriter(answer, true)

export const createOllamaWholeWriter = (answer: OllamaAnswer): ReplyWriter => createOllamaWriter(answer, false)
