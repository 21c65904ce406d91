/** Anthropic `POST /v1/messages`: a client's body -> the canonical request. */
import type { ChatRequest, Effort, Format, Message, Part, ToolCall, ToolChoice } from './canonical'
import { RouterError } from '../domain/errors'
import { billingHeader } from './anthropic-peek'
import type { Json } from './json/values'
import { arrayAt, compact, invalid, isObject, numberAt, objectAt, stringAt } from './json/values'
import { pictureFromBase64, pictureFromUrl } from './pictures'
import { readStop } from './sampling'

const textPart = (text: unknown): Part[] => (typeof text === 'string' && text !== '' ? [{ kind: 'text', text }] : [])

const notSupported = (what: string, param: string): RouterError =>
  new RouterError('not_supported', `${what} cannot be read by local engines; send the text instead.`, { param })

const readImage = (source: unknown, param: string): Part => {
  if (!isObject(source)) throw invalid('An image must have a "source".', param)
  const { type, url, data, media_type: mediaType } = source
  if (type === 'url' && typeof url === 'string') return { kind: 'picture', picture: pictureFromUrl(url, param) }
  if (type === 'file') throw notSupported('Pictures that were uploaded before', param)
  if (typeof data !== 'string') throw invalid('An image must have "data" or a "url".', param)
  const picture = pictureFromBase64(data, param)
  const isNamed = picture.kind === 'inline' && typeof mediaType === 'string' && mediaType.startsWith('image/')
  return { kind: 'picture', picture: isNamed ? { ...picture, mediaType } : picture }
}

const titled = (block: Json, parts: readonly Part[]): Part[] => [
  ...textPart(typeof block.title === 'string' ? `${block.title}:` : undefined),
  ...parts,
]

/** Of documents, those that are text. */
const readDocument = (block: Json, param: string): Part[] => {
  const source = isObject(block.source) ? block.source : {}
  if (source.type === 'text') return titled(block, textPart(source.data))
  if (source.type === 'content') return titled(block, readParts(source.content, param))
  throw notSupported('Documents that are not plain text', param)
}

/** What a model can read of a block. Blocks that only a hosted model knows are left out, whatever they are called. */
const readBlock = (block: unknown, param: string): Part[] => {
  if (!isObject(block)) throw invalid('A block of "content" must be an object.', param)
  if (block.type === 'text') return textPart(block.text)
  if (block.type === 'image') return [readImage(block.source, param)]
  if (block.type === 'document') return readDocument(block, param)
  if (block.type === 'search_result') return titled(block, readParts(block.content, param))
  return []
}

const readParts = (content: unknown, param: string): Part[] => {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return textPart(content)
  if (Array.isArray(content)) return content.flatMap((block) => readBlock(block, param))
  throw invalid('"content" must be a string or a list of blocks.', param)
}

const isPicture = ({ kind }: Part): boolean => kind === 'picture'

/** Other protocols have no place for the mark, so the text carries it. */
const asError = ([first, ...rest]: readonly Part[]): Part[] => [
  { kind: 'text', text: `Error: ${first?.kind === 'text' ? first.text : ''}` },
  ...rest,
]

/** A result as a turn of its own; pictures follow in the user's, since results of tools hold only text elsewhere. */
const readResult = (block: Json, param: string): { readonly result: Message; readonly pictures: Part[] } => {
  const parts = readParts(block.content, param)
  const callId = stringAt(block, 'tool_use_id', `${param}.tool_use_id`)
  const pictures = parts.filter(isPicture)
  const texts = parts.filter((part) => !isPicture(part))
  const elsewhere: Part[] = texts.length === 0 && pictures.length > 0 ? textPart('See the picture that follows.') : []
  const said = [...texts, ...elsewhere]
  return {
    result: {
      role: 'tool',
      parts: block.is_error === true ? asError(said) : said,
      calls: [],
      ...(callId !== undefined && { callId }),
    },
    pictures: pictures.length > 0 ? [...textPart(`Result of the tool call ${callId ?? ''}:`), ...pictures] : [],
  }
}

const isBlockOf =
  (type: string) =>
  (block: unknown): block is Json =>
    isObject(block) && block.type === type

/** Results first, each its own turn, then what else the user said as one. */
const readUser = (content: unknown, param: string): Message[] => {
  const blocks = Array.isArray(content) ? content : []
  const results = blocks.filter(isBlockOf('tool_result')).map((block) => readResult(block, param))
  const parts = [...results.flatMap(({ pictures }) => pictures), ...readParts(content, param)]
  const said: Message[] = parts.length > 0 || results.length === 0 ? [{ role: 'user', parts, calls: [] }] : []
  return [...results.map(({ result }) => result), ...said]
}

const readCall = (block: Json): ToolCall => ({
  name: String(block.name),
  arguments: JSON.stringify(block.input ?? {}),
  ...(typeof block.id === 'string' && { id: block.id }),
})

const readAssistant = (content: unknown, param: string): Message => {
  const blocks = Array.isArray(content) ? content : []
  const reasoning = blocks
    .filter(isBlockOf('thinking'))
    .flatMap(({ thinking }) => (typeof thinking === 'string' && thinking !== '' ? thinking : []))
    .join('\n')
  return {
    role: 'assistant',
    parts: readParts(content, param),
    calls: blocks.filter(isBlockOf('tool_use')).map(readCall),
    ...(reasoning !== '' && { reasoning }),
  }
}

const readMessage = (entry: unknown, index: number): Message[] => {
  const param = `messages[${index}]`
  if (!isObject(entry)) throw invalid(`"${param}" must be an object.`, param)
  const { role, content } = entry
  const at = `${param}.content`
  if (role === 'user') return readUser(content, at)
  if (role === 'assistant') return [readAssistant(content, at)]
  if (role === 'system') return [{ role, parts: readParts(content, at), calls: [] }]
  throw invalid(`"${param}.role" must be "user", "assistant" or "system".`, `${param}.role`)
}

/** One text, since many templates know only one system message; its blocks stay apart by a blank line. */
const readSystem = (system: unknown, keepBilling: boolean): Message[] => {
  const texts = readParts(system, 'system').flatMap((part) => (part.kind === 'text' ? part.text : []))
  const kept = texts.filter((text) => keepBilling || typeof system === 'string' || !text.startsWith(billingHeader))
  return kept.length === 0 ? [] : [{ role: 'system', parts: textPart(kept.join('\n\n')), calls: [] }]
}

/** A tool without a schema is one that only its host can run. */
const readTool = (tool: unknown): Json[] => {
  if (!isObject(tool) || typeof tool.name !== 'string' || !isObject(tool.input_schema)) return []
  const { name, description, input_schema: parameters, strict } = tool
  return [{ type: 'function', function: compact({ name, description, parameters, strict }) }]
}

/** In OpenAI's function form. */
export const readAnthropicTools = (tools: readonly unknown[]): Json[] => tools.flatMap(readTool)

const readToolChoice = (choice: Json | undefined): ToolChoice | undefined => {
  if (choice?.type === 'auto' || choice?.type === 'none') return { kind: choice.type }
  if (choice?.type === 'any') return { kind: 'required' }
  if (choice?.type === 'tool' && typeof choice.name === 'string')
    return { kind: 'only', names: [choice.name], required: true }
  return undefined
}

const efforts: readonly unknown[] = ['low', 'medium', 'high', 'xhigh', 'max'] satisfies Effort[]

/** `adaptive` leaves it to the model. */
const readReasoning = (thinking: Json | undefined, effort: unknown): ChatRequest['reasoning'] => {
  if (thinking?.type === 'disabled') return { on: false }
  if (efforts.includes(effort)) return { on: true, effort: effort as Effort }
  if (thinking?.type !== 'enabled') return undefined
  const budgetTokens = numberAt(thinking, 'budget_tokens', 'thinking.budget_tokens')
  return { on: true, ...(budgetTokens !== undefined && { budgetTokens }) }
}

const readFormat = (format: unknown): Format | undefined =>
  isObject(format) && format.type === 'json_schema' && isObject(format.schema)
    ? { kind: 'schema', schema: format.schema }
    : undefined

const sampled = ['temperature', 'top_p', 'top_k'] as const

const readSampling = (body: Json): Record<string, number> =>
  Object.fromEntries(
    sampled.flatMap((name) => {
      const value = numberAt(body, name)
      return value === undefined ? [] : [[name, value]]
    }),
  )

/**
 * Throws `invalid_request` with the member's name in `param`, and `not_supported` for content that no local engine can
 * read. Members that are not known are ignored: clients of this dialect are ahead of every server.
 */
export const readAnthropic = (body: Json, { keepBilling }: { readonly keepBilling: boolean }): ChatRequest => {
  const tools = readAnthropicTools(arrayAt(body, 'tools'))
  const choice = objectAt(body, 'tool_choice')
  const toolChoice = tools.length > 0 ? readToolChoice(choice) : undefined
  const output = objectAt(body, 'output_config') ?? {}
  const format = readFormat(output.format)
  const reasoning = readReasoning(objectAt(body, 'thinking'), output.effort)
  const maxTokens = numberAt(body, 'max_tokens')
  return {
    messages: [...readSystem(body.system, keepBilling), ...arrayAt(body, 'messages').flatMap(readMessage)],
    tools,
    sampling: readSampling(body),
    stop: readStop(body.stop_sequences, 'stop_sequences'),
    ...(toolChoice && { toolChoice }),
    ...(choice?.disable_parallel_tool_use === true && { parallelCalls: false }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(format && { format }),
    ...(reasoning && { reasoning }),
  }
}
