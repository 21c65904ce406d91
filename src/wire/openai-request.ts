/** OpenAI `POST /v1/chat/completions`: a client's body -> the canonical request. */
import type { ChatRequest, Effort, Format, Message, Part, ToolCall, ToolChoice } from './canonical'
import { argumentsText } from './calls'
import { customArguments, customFunction } from './custom-tools'
import type { Json } from './json/values'
import { arrayAt, booleanAt, invalid, isObject, numberAt, objectAt, stringAt } from './json/values'
import { pictureFromUrl } from './pictures'
import { readSampling, readStop } from './sampling'

export const roles: Readonly<Record<string, Message['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'tool',
}

const readPicture = (value: unknown, param: string): Part => {
  const url = isObject(value) ? value.url : value
  if (typeof url !== 'string') throw invalid('"image_url" must have a "url".', param)
  return { kind: 'picture', picture: pictureFromUrl(url, param) }
}

const readAudio = (part: Json, param: string): Part => {
  const audio = objectAt(part, 'input_audio', param) ?? {}
  return {
    kind: 'audio',
    base64: stringAt(audio, 'data', param) ?? '',
    format: stringAt(audio, 'format', param) ?? 'wav',
  }
}

const readPart = (part: unknown, param: string): Part[] => {
  if (typeof part === 'string') return [{ kind: 'text', text: part }]
  if (!isObject(part)) throw invalid('A part of "content" must be an object.', param)
  if (part.type === 'image_url' || part.type === 'input_image') return [readPicture(part.image_url, param)]
  if (part.type === 'input_audio') return [readAudio(part, param)]
  if (part.type === 'file' || part.type === 'input_file')
    throw invalid('Files are not supported for this model; send their text.', param)
  const text = part.type === 'refusal' ? part.refusal : part.text
  return typeof text === 'string' ? [{ kind: 'text', text }] : []
}

/** A string, or parts of a message of the chat or the Responses endpoint. */
export const readContent = (content: unknown, param: string): Part[] => {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  if (Array.isArray(content)) return content.flatMap((part) => readPart(part, param))
  throw invalid('"content" must be a string or a list of parts.', param)
}

const readCall = (call: unknown): ToolCall[] => {
  if (!isObject(call)) return []
  const id = typeof call.id === 'string' ? { id: call.id } : {}
  if (isObject(call.custom))
    return [{ ...id, name: String(call.custom.name), arguments: customArguments(call.custom.input) }]
  if (!isObject(call.function)) return []
  return [{ ...id, name: String(call.function.name), arguments: argumentsText(call.function.arguments) }]
}

/** The call of a client from before there were several at once. */
const readLegacyCall = ({ function_call: call }: Json): ToolCall[] => readCall({ function: call })

const readMessage = (entry: unknown, index: number): Message => {
  const param = `messages[${index}]`
  if (!isObject(entry)) throw invalid(`"${param}" must be an object.`, param)
  const role = typeof entry.role === 'string' ? roles[entry.role] : undefined
  if (role === undefined) throw invalid(`"${param}.role" is not a role.`, `${param}.role`)
  const reasoning = entry.reasoning_content ?? entry.reasoning
  return {
    role,
    parts: readContent(entry.content, `${param}.content`),
    calls: [...arrayAt(entry, 'tool_calls', `${param}.tool_calls`).flatMap(readCall), ...readLegacyCall(entry)],
    ...(typeof reasoning === 'string' && reasoning !== '' && { reasoning }),
    ...(typeof entry.tool_call_id === 'string' && { callId: entry.tool_call_id }),
    ...(role === 'tool' && typeof entry.name === 'string' && { toolName: entry.name }),
  }
}

/** Of a function or a custom tool, as it is offered or chosen; all others are run by a hosted service. */
const nameOf = (tool: unknown): string | undefined => {
  const { function: asFunction, custom } = isObject(tool) ? tool : {}
  const named = isObject(asFunction) ? asFunction : isObject(custom) ? custom : {}
  return typeof named.name === 'string' ? named.name : undefined
}

/** In function form. */
const readTool = (tool: unknown): Json[] => {
  const name = nameOf(tool)
  if (!isObject(tool) || name === undefined) return []
  return [isObject(tool.function) || !isObject(tool.custom) ? tool : customFunction(tool.custom, name)]
}

export const readOpenAiTools = (tools: readonly unknown[]): Json[] => tools.flatMap(readTool)

/** Names of the tools whose calls the client knows as free text. */
export const customNames = (tools: readonly unknown[]): ReadonlySet<string> =>
  new Set(
    tools.flatMap((tool) =>
      isObject(tool) && !isObject(tool.function) && isObject(tool.custom) ? (nameOf(tool) ?? []) : [],
    ),
  )

const readToolChoice = (choice: unknown): ToolChoice | undefined => {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { kind: choice }
  if (!isObject(choice)) return undefined
  const name = nameOf(choice)
  if (name !== undefined) return { kind: 'only', names: [name], required: true }
  if (choice.type !== 'allowed_tools') return undefined
  const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : choice
  const names = arrayAt(allowed, 'tools', 'tool_choice').flatMap((tool) => nameOf(tool) ?? [])
  return { kind: 'only', names, required: allowed.mode === 'required' }
}

/** What a `json_schema` format says, wherever the endpoint has it. */
export const readSchema = ({ name, schema, strict }: Json): Format => {
  if (!isObject(schema)) return { kind: 'json' }
  return {
    kind: 'schema',
    schema,
    ...(typeof name === 'string' && { name }),
    ...(typeof strict === 'boolean' && { strict }),
  }
}

const readFormat = (body: Json): Format | undefined => {
  const format = objectAt(body, 'response_format')
  if (format?.type === 'json_object') return { kind: 'json' }
  if (format?.type !== 'json_schema') return undefined
  return readSchema(objectAt(format, 'json_schema', 'response_format.json_schema') ?? {})
}

const efforts: readonly string[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] satisfies Effort[]

export const readEffort = (effort: string | undefined): ChatRequest['reasoning'] => {
  if (effort === 'none') return { on: false }
  return effort !== undefined && efforts.includes(effort) ? { on: true, effort: effort as Effort } : undefined
}

/** `keep_alive` as Ollama has it, or LM Studio's `ttl` in seconds. */
const readKeepAlive = (body: Json): string | number | undefined => {
  const hint = body.keep_alive ?? body.ttl
  return typeof hint === 'string' || typeof hint === 'number' ? hint : undefined
}

/** Members that other servers take as extensions are read under Ollama's names too; unknown ones are ignored. */
const readExtendedSampling = (body: Json, options: Json): Record<string, number> => {
  const repetition = numberAt(body, 'repetition_penalty')
  return {
    ...readSampling(options, 'options.'),
    ...(repetition !== undefined && { repeat_penalty: repetition }),
    ...readSampling(body),
  }
}

/** Throws `invalid_request` with the member's name in `param`. */
export const readOpenAiChat = (body: Json): ChatRequest => {
  const options = objectAt(body, 'options') ?? {}
  const toolChoice = readToolChoice(body.tool_choice)
  const format = readFormat(body)
  const reasoning = readEffort(stringAt(body, 'reasoning_effort'))
  const keepAlive = readKeepAlive(body)
  const parallelCalls = booleanAt(body, 'parallel_tool_calls')
  const maxTokens = numberAt(body, 'max_completion_tokens') ?? numberAt(body, 'max_tokens')
  const logprobs = booleanAt(body, 'logprobs')
  const topLogprobs = numberAt(body, 'top_logprobs')
  const choices = numberAt(body, 'n')
  const contextTokens = numberAt(options, 'num_ctx', 'options.num_ctx')
  return {
    messages: arrayAt(body, 'messages').map(readMessage),
    tools: readOpenAiTools(arrayAt(body, 'tools')),
    sampling: readExtendedSampling(body, options),
    stop: readStop(body.stop, 'stop'),
    ...(toolChoice && { toolChoice }),
    ...(parallelCalls !== undefined && { parallelCalls }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(format && { format }),
    ...(reasoning && { reasoning }),
    ...(logprobs !== undefined && { logprobs }),
    ...(topLogprobs !== undefined && { topLogprobs }),
    ...(choices !== undefined && { choices }),
    ...(keepAlive !== undefined && { keepAlive }),
    ...(contextTokens !== undefined && { contextTokens }),
  }
}
