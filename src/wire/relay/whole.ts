/** An answer in one piece whose client and node speak the same dialect. */
import type { Writable } from '../../domain/writable'
import { concat, decode, splice } from '../bytes'
import type { ReplyTransform, Usage } from '../exchange'
import type { Span } from '../json/cursor'
import { finish, members, skip } from '../json/cursor'
import type { Json } from '../json/values'
import type { Repair } from '../repair/repair'
import { repairOpenAiAnswer } from '../repair/openai-calls'
import { errorOf } from '../replies'
import { anthropicUsage } from './anthropic-tail'
import { isThinkingExhausted } from './exhausted'
import { ollamaUsageIn } from './ollama-tail'
import { usageFrom } from './openai-tail'

export interface RelayWholeOptions {
  readonly contentType: string
  /** The model as the client wrote it, and as the node calls it. */
  readonly asked: string
  readonly model: string
  /** Calls of tools are to be repaired; of an answer in OpenAI's form. */
  readonly repair?: Repair | undefined
  /** Puts the body into the protocol's form, where engines are known not to keep to it. */
  readonly form?: (body: Uint8Array) => Uint8Array
}

const wanted = new Set(['error', 'usage', 'timings', 'prompt_eval_count', 'eval_count'])

interface Facts {
  readonly json: Json
  readonly model?: Span
}

/** The few top-level members that matter, without parsing the answer's text; undefined when it is not whole. */
const scan = (body: Uint8Array): Facts | undefined => {
  const cursor = { bytes: body, at: 0 }
  const json: Record<string, unknown> = {}
  let model: Span | undefined
  try {
    members(cursor, (name) => {
      const span = skip(cursor)
      if (name === 'model') model = span
      else if (wanted.has(name)) json[name] = JSON.parse(decode(body.subarray(span.start, span.end)))
    })
    finish(cursor)
  } catch {
    return undefined
  }
  return model === undefined ? { json } : { json, model }
}

/** In the words of whichever dialect it is; most speak OpenAI's. */
const usageIn = (json: Json): Usage => {
  const openAi = usageFrom(json)
  if (openAi.tokensOut !== undefined) return openAi
  const anthropic = anthropicUsage(json.usage)
  if (anthropic.tokensOut !== undefined) return anthropic
  const ollama = ollamaUsageIn(json)
  return ollama.tokensOut === undefined ? {} : ollama
}

export const relayWhole = ({ contentType, asked, model, repair, form }: RelayWholeOptions): ReplyTransform => {
  const pieces: Uint8Array[] = []
  const renames = asked !== model
  const keepsBack = renames || repair !== undefined || form !== undefined
  let facts: Facts | undefined
  let problem: ReturnType<ReplyTransform['problem']>

  const renamed = (body: Uint8Array): Uint8Array =>
    facts?.model ? splice(body, [{ ...facts.model, text: JSON.stringify(asked) }]) : body

  return {
    contentType,
    push(chunk) {
      pieces.push(chunk)
      return keepsBack ? undefined : chunk
    },
    end() {
      const body = form ? form(concat(pieces)) : concat(pieces)
      facts = scan(body)
      problem = errorOf(facts?.json ?? {})
      if (!keepsBack || body.length === 0) return undefined
      const named = renames ? renamed(body) : body
      return repair && facts !== undefined && problem === undefined ? repairOpenAiAnswer(named, repair) : named
    },
    complete: () => facts !== undefined && problem === undefined,
    problem: () => problem,
    // Until it is whole it may still turn out to be an error, and nothing is lost by waiting.
    begun: () => facts !== undefined && problem === undefined,
    usage: (): Usage => {
      if (facts === undefined) return {}
      const usage: Writable<Usage> = usageIn(facts.json)
      if (isThinkingExhausted(concat(pieces))) usage.thinkingExhausted = true
      return repair ? { ...usage, ...repair.usage() } : usage
    },
  }
}
