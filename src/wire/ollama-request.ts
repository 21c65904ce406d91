/** Ollama `POST /api/chat` and `POST /api/generate`: a client's body -> the canonical request. */
import type { ChatRequest, Effort, Format, Message, Part, ToolCall } from './canonical'
import { argumentsText } from './calls'
import type { Json } from './json/values'
import { arrayAt, booleanAt, invalid, isObject, numberAt, objectAt, stringAt } from './json/values'
import { pictureFromBase64 } from './pictures'
import { readSampling, readStop } from './sampling'

const roles: readonly string[] = ['system', 'user', 'assistant', 'tool'] satisfies Message['role'][]

const readImages = (json: Json, param: string): Part[] =>
  arrayAt(json, 'images', param).map((image) => {
    if (typeof image !== 'string') throw invalid('An image must be a base64 string.', param)
    return { kind: 'picture', picture: pictureFromBase64(image, param) }
  })

const readText = (text: string | undefined): Part[] =>
  text === undefined || text === '' ? [] : [{ kind: 'text', text }]

const readCall = (call: unknown): ToolCall[] => {
  if (!isObject(call) || !isObject(call.function)) return []
  return [
    {
      name: String(call.function.name),
      arguments: argumentsText(call.function.arguments ?? {}),
      ...(typeof call.id === 'string' && call.id !== '' && { id: call.id }),
    },
  ]
}

const readMessage = (entry: unknown, index: number): Message => {
  const param = `messages[${index}]`
  if (!isObject(entry)) throw invalid(`"${param}" must be an object.`, param)
  const { role, thinking } = entry
  if (typeof role !== 'string' || !roles.includes(role))
    throw invalid(`"${param}.role" is not a role.`, `${param}.role`)
  return {
    role: role as Message['role'],
    parts: [...readText(stringAt(entry, 'content', `${param}.content`)), ...readImages(entry, `${param}.images`)],
    calls: arrayAt(entry, 'tool_calls', `${param}.tool_calls`).flatMap(readCall),
    ...(typeof thinking === 'string' && thinking !== '' && { reasoning: thinking }),
    ...(typeof entry.tool_call_id === 'string' && { callId: entry.tool_call_id }),
    ...(typeof entry.tool_name === 'string' && { toolName: entry.tool_name }),
  }
}

const readFormat = (format: unknown): Format | undefined => {
  if (format === 'json') return { kind: 'json' }
  if (isObject(format)) return { kind: 'schema', schema: format }
  if (format === undefined || format === null || format === '') return undefined
  throw invalid('"format" must be "json" or a JSON schema.', 'format')
}

const levels: readonly string[] = ['low', 'medium', 'high', 'max'] satisfies Effort[]

const readThink = (think: unknown): ChatRequest['reasoning'] => {
  if (think === undefined || think === null) return undefined
  if (typeof think === 'boolean') return { on: think }
  if (typeof think === 'string' && levels.includes(think)) return { on: true, effort: think as Effort }
  throw invalid('"think" must be true, false, "low", "medium", "high" or "max".', 'think')
}

/** Everything but the messages, which the two endpoints spell differently. */
const readSettings = (body: Json): Omit<ChatRequest, 'messages'> => {
  const options = objectAt(body, 'options') ?? {}
  const format = readFormat(body.format)
  const reasoning = readThink(body.think)
  const predict = numberAt(options, 'num_predict', 'options.num_predict')
  const logprobs = booleanAt(body, 'logprobs')
  const topLogprobs = numberAt(body, 'top_logprobs')
  return {
    tools: arrayAt(body, 'tools').filter(isObject),
    sampling: readSampling(options, 'options.'),
    stop: readStop(options.stop, 'options.stop'),
    // Negative means until the end of the context, which is what an absent limit means elsewhere.
    ...(predict !== undefined && predict > 0 && { maxTokens: predict }),
    ...(format && { format }),
    ...(reasoning && { reasoning }),
    ...(logprobs !== undefined && { logprobs }),
    ...(topLogprobs !== undefined && { topLogprobs }),
  }
}

export const readOllamaChat = (body: Json): ChatRequest => ({
  ...readSettings(body),
  messages: arrayAt(body, 'messages').map(readMessage),
})

/** A completion as a chat of one turn. */
export const readOllamaGenerate = (body: Json): ChatRequest => {
  const system = readText(stringAt(body, 'system'))
  const prompt = [...readText(stringAt(body, 'prompt')), ...readImages(body, 'images')]
  return {
    ...readSettings(body),
    messages: [
      ...(system.length > 0 ? [{ role: 'system' as const, parts: system, calls: [] }] : []),
      { role: 'user', parts: prompt, calls: [] },
    ],
  }
}
