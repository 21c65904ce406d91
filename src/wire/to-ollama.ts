/** The canonical request -> Ollama's `POST /api/chat`, and raw prompts -> `POST /api/generate`. */
import type { ChatRequest, Effort, Message, Part } from './canonical'
import { argumentsObject } from './calls'
import type { Json } from './json/values'
import { compact, invalid, isObject } from './json/values'
import { pictureBase64 } from './pictures'

export interface OllamaTarget {
  readonly model: string
  readonly stream: boolean
  /** The window that the model is, or is to be, loaded with there; another one would reload it. */
  readonly contextTokens?: number
  readonly keepAlive?: string | number
}

const textOf = (parts: readonly Part[]): string =>
  parts.flatMap((part) => (part.kind === 'text' ? part.text : [])).join('\n')

/** Ollama has one list for everything that is not text; audio-capable models take sound there. */
const attachments = (parts: readonly Part[]): string[] =>
  parts.flatMap((part) => {
    if (part.kind === 'picture') return pictureBase64(part.picture, 'messages')
    return part.kind === 'audio' ? part.base64 : []
  })

/** Name of the tool that each call id belongs to, since Ollama's results name the tool. */
const toolNames = (messages: readonly Message[]): ReadonlyMap<string, string> =>
  new Map(messages.flatMap(({ calls }) => calls.flatMap((call) => (call.id ? [[call.id, call.name] as const] : []))))

const writeMessage = (message: Message, names: ReadonlyMap<string, string>): Json => {
  const images = attachments(message.parts)
  return compact({
    role: message.role,
    content: textOf(message.parts),
    thinking: message.reasoning,
    images: images.length > 0 ? images : undefined,
    tool_calls:
      message.calls.length > 0
        ? message.calls.map((call, index) =>
            compact({ id: call.id, function: { index, name: call.name, arguments: argumentsObject(call.arguments) } }),
          )
        : undefined,
    tool_name: message.toolName ?? (message.callId === undefined ? undefined : names.get(message.callId)),
    tool_call_id: message.callId,
  })
}

const nameOf = (tool: Json): unknown => (isObject(tool.function) ? tool.function.name : undefined)

/** Ollama cannot be told which tool to use: the others are left out, and a must is said in words. */
const chooseTools = ({
  tools,
  toolChoice,
}: ChatRequest): { readonly tools: readonly Json[]; readonly rule?: string } => {
  if (toolChoice === undefined || toolChoice.kind === 'auto' || tools.length === 0) return { tools }
  if (toolChoice.kind === 'none') return { tools: [] }
  if (toolChoice.kind === 'required') return { tools, rule: 'Answer by calling one of the available tools.' }
  const chosen = tools.filter((tool) => toolChoice.names.includes(String(nameOf(tool))))
  if (chosen.length === 0) throw invalid('"tool_choice" names a tool that is not in "tools".', 'tool_choice')
  if (!toolChoice.required) return { tools: chosen }
  const only = chosen.length === 1 ? `the tool "${nameOf(chosen[0] as Json)}"` : 'one of the available tools'
  return { tools: chosen, rule: `Answer by calling ${only}.` }
}

/** Joined to the first system message: many templates know only that one. */
const withRule = (messages: readonly Message[], rule: string | undefined): readonly Message[] => {
  if (rule === undefined) return messages
  const said: Part = { kind: 'text', text: rule }
  const [first, ...rest] = messages
  if (first?.role === 'system') return [{ ...first, parts: [...first.parts, said] }, ...rest]
  return [{ role: 'system', parts: [said], calls: [] }, ...messages]
}

const levels: Readonly<Record<Effort, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'max',
  max: 'max',
}

const think = (reasoning: ChatRequest['reasoning']): boolean | string | undefined =>
  reasoning && (reasoning.on && reasoning.effort !== undefined ? levels[reasoning.effort] : reasoning.on)

const format = (wanted: ChatRequest['format']): unknown => {
  if (wanted === undefined) return undefined
  return wanted.kind === 'json' ? 'json' : wanted.schema
}

/** The larger of what the node loads and what the client insists on: a smaller one would only reload the model. */
const window = (request: ChatRequest, target: OllamaTarget): number | undefined => {
  const known = [target.contextTokens, request.contextTokens].filter((tokens) => tokens !== undefined)
  return known.length > 0 ? Math.max(...known) : undefined
}

/** Throws `invalid_request`: Ollama gives one answer at a time. */
const writeOptions = (request: ChatRequest, target: OllamaTarget): Json | undefined => {
  if (request.choices !== undefined && request.choices > 1)
    throw invalid('This model runs on an engine that gives one answer per request; "n" must be 1.', 'n')
  const options = compact({
    ...request.sampling,
    num_predict: request.maxTokens,
    stop: request.stop.length > 0 ? request.stop : undefined,
    num_ctx: window(request, target),
  })
  return Object.keys(options).length > 0 ? options : undefined
}

/**
 * Ollama drops the beginning of a prompt that is too long for its window, and says nothing. Clients of other protocols wait for the
 * error, to make their prompt shorter. Versions that do not know the member go on as they did.
 */
const NEVER_TRUNCATE = false

/** Throws `invalid_request` for what Ollama cannot do: several answers at once, pictures behind a URL. */
export const writeOllamaChat = (request: ChatRequest, target: OllamaTarget): Json => {
  const { tools, rule } = chooseTools(request)
  const names = toolNames(request.messages)
  return compact({
    model: target.model,
    messages: withRule(request.messages, rule).map((message) => writeMessage(message, names)),
    tools: tools.length > 0 ? tools : undefined,
    stream: target.stream,
    format: format(request.format),
    think: think(request.reasoning),
    logprobs: request.logprobs,
    top_logprobs: request.topLogprobs,
    truncate: NEVER_TRUNCATE,
    keep_alive: target.keepAlive ?? request.keepAlive,
    options: writeOptions(request, target),
  })
}

/** A prompt without any template; only to fill in before a suffix does a model need the one that it has for this. */
export const writeOllamaGenerate = (
  { chat, prompt, suffix }: { readonly chat: ChatRequest; readonly prompt: string; readonly suffix?: string },
  target: OllamaTarget,
): Json =>
  compact({
    model: target.model,
    prompt,
    suffix,
    raw: suffix === undefined ? true : undefined,
    stream: target.stream,
    logprobs: chat.logprobs,
    top_logprobs: chat.topLogprobs,
    truncate: NEVER_TRUNCATE,
    keep_alive: target.keepAlive,
    options: writeOptions(chat, target),
  })
