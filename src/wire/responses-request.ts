/** OpenAI `POST /v1/responses`: a client's body -> the canonical request. */
import type { ChatRequest, Format, Message } from './canonical'
import type { Json } from './json/values'
import { arrayAt, booleanAt, isObject, numberAt, objectAt, stringAt } from './json/values'
import { readEffort, readSchema } from './openai-request'
import { readInput } from './responses-input'
import type { Toolbox } from './responses-tools'
import { createToolbox, readToolChoice } from './responses-tools'
import { readSampling, readStop } from './sampling'

export interface ResponsesRequest {
  readonly chat: ChatRequest
  readonly toolbox: Toolbox
  /** What the answer repeats of the request. */
  readonly echo: Json
}

const readFormat = (format: Json | undefined): Format | undefined => {
  if (format?.type === 'json_object') return { kind: 'json' }
  return format?.type === 'json_schema' ? readSchema(format) : undefined
}

const systemText = ({ role, parts }: Message): string | undefined =>
  role === 'system' ? parts.flatMap((part) => (part.kind === 'text' ? part.text : [])).join('\n') : undefined

/** Many templates know only one system message, at the beginning; what stands there becomes one, blocks kept apart. */
const withSystem = (instructions: string | undefined, turns: readonly Message[]): readonly Message[] => {
  const texts = turns.map(systemText)
  const end = texts.indexOf(undefined)
  const leading = end < 0 ? turns.length : end
  const said = [instructions, ...texts.slice(0, leading)].filter((text) => text !== undefined && text !== '')
  if (said.length === 0) return turns.slice(leading)
  return [{ role: 'system', parts: [{ kind: 'text', text: said.join('\n\n') }], calls: [] }, ...turns.slice(leading)]
}

/** Clients ask for token probabilities in either of these ways. */
const wantsLogprobs = (body: Json): boolean =>
  arrayAt(body, 'include').includes('message.output_text.logprobs') || (numberAt(body, 'top_logprobs') ?? 0) > 0

/** Members of the response object that say how it was asked for; always there, since typed clients expect them. */
const echoOf = (body: Json): Json => ({
  instructions: body.instructions ?? null,
  max_output_tokens: body.max_output_tokens ?? null,
  metadata: body.metadata ?? {},
  parallel_tool_calls: body.parallel_tool_calls ?? true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null, ...(isObject(body.reasoning) && body.reasoning) },
  store: false,
  temperature: body.temperature ?? null,
  text: { format: { type: 'text' }, ...(isObject(body.text) && body.text) },
  tool_choice: body.tool_choice ?? 'auto',
  tools: body.tools ?? [],
  top_p: body.top_p ?? null,
  truncation: 'disabled',
})

/**
 * Throws `invalid_request` with the member's name in `param`, and `response_not_found` for history that is not in the
 * request. Members that are not known are ignored.
 */
export const readResponses = (body: Json): ResponsesRequest => {
  const toolbox = createToolbox(arrayAt(body, 'tools'))
  const toolChoice = readToolChoice(body.tool_choice, toolbox)
  const parallelCalls = booleanAt(body, 'parallel_tool_calls')
  const maxTokens = numberAt(body, 'max_output_tokens')
  const topLogprobs = numberAt(body, 'top_logprobs')
  const text = objectAt(body, 'text') ?? {}
  const format = readFormat(objectAt(text, 'format', 'text.format'))
  const reasoning = readEffort(stringAt(objectAt(body, 'reasoning') ?? {}, 'effort', 'reasoning.effort'))
  const chat: ChatRequest = {
    messages: withSystem(stringAt(body, 'instructions'), readInput(body.input, toolbox)),
    tools: toolbox.functions,
    sampling: readSampling(body),
    stop: readStop(body.stop, 'stop'),
    ...(toolChoice && { toolChoice }),
    ...(parallelCalls !== undefined && toolbox.functions.length > 0 && { parallelCalls }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(format && { format }),
    ...(reasoning && { reasoning }),
    ...(wantsLogprobs(body) && { logprobs: true }),
    ...(topLogprobs !== undefined && topLogprobs > 0 && { topLogprobs }),
  }
  return { chat, toolbox, echo: echoOf(body) }
}
