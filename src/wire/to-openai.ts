/** The canonical request -> OpenAI's `POST /v1/chat/completions`, and Ollama's raw prompts -> `POST /v1/completions`. */
import type { ChatRequest, Effort, Message, Part, ToolCall } from './canonical'
import { callId } from './calls'
import type { Json } from './json/values'
import { compact, isObject } from './json/values'
import { pictureUrl } from './pictures'

export interface OpenAiTarget {
  readonly model: string
  readonly stream: boolean
  /** Ours; ids of calls that came without one are derived from it. */
  readonly request: string
}

const writePart = (part: Part): Json => {
  if (part.kind === 'text') return { type: 'text', text: part.text }
  if (part.kind === 'picture') return { type: 'image_url', image_url: { url: pictureUrl(part.picture) } }
  return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } }
}

/** A string where there is only text: many servers know nothing else for some roles. */
const writeContent = ({ role, parts, calls }: Message): unknown => {
  if (parts.every((part) => part.kind === 'text')) {
    const text = parts.map((part) => part.text).join('\n')
    return role === 'assistant' && text === '' && calls.length > 0 ? null : text
  }
  return parts.map(writePart)
}

/** Gives every call an id and every result the id of its call: by its own, by the tool's name, else in order. */
const withIds = (messages: readonly Message[], request: string): readonly Message[] => {
  let open: ToolCall[] = []
  let counted = 0
  return messages.map((message) => {
    if (message.calls.length > 0) {
      const calls = message.calls.map((call) => ({ ...call, id: call.id ?? callId(request, counted++) }))
      open = [...calls]
      return { ...message, calls }
    }
    if (message.role !== 'tool') return message
    const answered =
      open.find((call) => call.id === message.callId) ?? open.find((call) => call.name === message.toolName) ?? open[0]
    open = open.filter((call) => call !== answered)
    const id = message.callId ?? answered?.id
    return id === undefined ? message : { ...message, callId: id }
  })
}

const writeMessage = (message: Message): Json =>
  compact({
    role: message.role,
    content: writeContent(message),
    reasoning_content: message.reasoning,
    tool_calls:
      message.calls.length > 0
        ? message.calls.map((call) => ({
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: call.arguments === '' ? '{}' : call.arguments },
          }))
        : undefined,
    tool_call_id: message.callId,
  })

/** Where only some may be called, the others are not offered: several cannot be named in a choice. */
const writeTools = ({ tools, toolChoice }: ChatRequest): Json => {
  if (tools.length === 0 || toolChoice === undefined) return tools.length === 0 ? {} : { tools }
  if (toolChoice.kind !== 'only') return { tools, tool_choice: toolChoice.kind }
  const { names, required } = toolChoice
  const [name] = names
  if (required && names.length === 1) return { tools, tool_choice: { type: 'function', function: { name } } }
  const allowed = tools.filter((tool) => isObject(tool.function) && names.includes(String(tool.function.name)))
  return allowed.length === 0 ? {} : { tools: allowed, tool_choice: required ? 'required' : 'auto' }
}

const writeFormat = (format: ChatRequest['format']): Json | undefined => {
  if (format === undefined) return undefined
  if (format.kind === 'json') return { type: 'json_object' }
  const { name = 'response', schema, strict } = format
  return { type: 'json_schema', json_schema: compact({ name, schema, strict }) }
}

/** Thinking tokens below which a budget counts as that effort. */
const lowBudget = 2_048
const mediumBudget = 8_192

const effortOf = (budget: number | undefined): Effort | undefined => {
  if (budget === undefined) return undefined
  if (budget < lowBudget) return 'low'
  return budget < mediumBudget ? 'medium' : 'high'
}

/** Off is said twice: servers read either the effort or the template's own switch. */
const writeReasoning = (reasoning: ChatRequest['reasoning']): Json => {
  if (reasoning === undefined) return {}
  if (!reasoning.on) return { reasoning_effort: 'none', chat_template_kwargs: { enable_thinking: false } }
  const effort = reasoning.effort ?? effortOf(reasoning.budgetTokens)
  return effort === undefined ? {} : { reasoning_effort: effort }
}

/** Both names: older local servers know only `max_tokens`, newer ones prefer the other. */
const writeLimit = (tokens: number | undefined): Json =>
  tokens === undefined ? {} : { max_tokens: tokens, max_completion_tokens: tokens }

const writeStream = (stream: boolean): Json =>
  stream ? { stream: true, stream_options: { include_usage: true } } : { stream: false }

export const writeOpenAiChat = (request: ChatRequest, target: OpenAiTarget): Json =>
  compact({
    model: target.model,
    messages: withIds(request.messages, target.request).map(writeMessage),
    ...writeTools(request),
    parallel_tool_calls: request.parallelCalls,
    ...request.sampling,
    ...writeLimit(request.maxTokens),
    stop: request.stop.length > 0 ? request.stop : undefined,
    response_format: writeFormat(request.format),
    ...writeReasoning(request.reasoning),
    logprobs: request.logprobs,
    top_logprobs: request.topLogprobs,
    n: request.choices,
    ...writeStream(target.stream),
  })

/** A prompt that no template may touch. */
export const writeOpenAiCompletion = (
  request: ChatRequest,
  raw: { readonly prompt: string; readonly suffix?: string },
  target: OpenAiTarget,
): Json =>
  compact({
    model: target.model,
    prompt: raw.prompt,
    suffix: raw.suffix,
    ...request.sampling,
    max_tokens: request.maxTokens,
    stop: request.stop.length > 0 ? request.stop : undefined,
    ...writeStream(target.stream),
  })
