import { answer, serveSilently } from './answer'
import type { FakeModel } from './options'
import { chatFormat, completionFormat, type Flavour } from './openai-format'
import { countTokens, embeddingOf, type Question } from './question'
import { type Face, sendError, sendJson, type Turn } from './turn'

/** What an engine does differently on its OpenAI routes. */
export interface OpenAiRules {
  readonly flavour: Flavour
  readonly face: Pick<Face, 'errorBody'>
  /** The model that serves the request; undefined after it answered itself. */
  choose(turn: Turn): FakeModel | undefined
  /** Refuses a question before it runs; true after it answered. */
  refuse?(turn: Turn, question: Question): boolean
}

interface Part {
  readonly type?: string
  readonly text?: string
}

interface Message {
  readonly role?: string
  readonly content?: string | readonly Part[] | null
}

const partsOf = (message: Message): readonly Part[] =>
  typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : (message.content ?? [])

const textOf = (message: Message): string =>
  partsOf(message)
    .map((part) => part.text ?? '')
    .join('')

const jsonOf = (format: unknown): unknown => {
  const { type, json_schema: schema } = (format ?? {}) as { type?: string; json_schema?: { schema?: unknown } }
  if (type === 'json_schema') return schema?.schema ?? true
  return type === 'json_object' ? true : undefined
}

/** Models think unless the request says not to, as the engines have it. */
const wantsThinking = (json: Readonly<Record<string, unknown>>, model: FakeModel): boolean => {
  const template = json.chat_template_kwargs as { enable_thinking?: boolean } | undefined
  const off = json.reasoning_effort === 'none' || template?.enable_thinking === false
  return !off && (model.capabilities ?? []).includes('thinking')
}

const limitOf = (json: Readonly<Record<string, unknown>>): { maxTokens?: number } => {
  const limit = json.max_completion_tokens ?? json.max_tokens
  return typeof limit === 'number' ? { maxTokens: limit } : {}
}

const chatQuestion = (json: Readonly<Record<string, unknown>>, model: FakeModel): Question => {
  const messages = json.messages as readonly Message[]
  const tools = (json.tools ?? []) as readonly { function?: { name?: string; parameters?: unknown } }[]
  const last = messages.at(-1)
  return {
    model,
    text: messages.map(textOf).join('\n'),
    last: last?.role === 'user' ? textOf(last) : '',
    tools: tools.map((tool) => ({ name: tool.function?.name ?? '', parameters: tool.function?.parameters })),
    images: messages.flatMap(partsOf).filter((part) => part.type === 'image_url').length,
    think: wantsThinking(json, model),
    json: jsonOf(json.response_format),
    ...limitOf(json),
  }
}

const promptText = (prompt: unknown): string =>
  Array.isArray(prompt) ? prompt.map(promptText).join(' ') : String(prompt ?? '')

const completionQuestion = (json: Readonly<Record<string, unknown>>, model: FakeModel): Question => ({
  model,
  text: promptText(json.prompt),
  last: '',
  tools: [],
  images: 0,
  think: false,
  ...limitOf(json),
})

const ask = (turn: Turn, rules: OpenAiRules, isChat: boolean) => {
  const { json } = turn
  if (isChat ? !Array.isArray(json.messages) : json.prompt === undefined) {
    return sendError(turn, rules.face, 400, `'${isChat ? 'messages' : 'prompt'}' is required`)
  }
  const model = rules.choose(turn)
  if (!model) return
  const question = isChat ? chatQuestion(json, model) : completionQuestion(json, model)
  if (rules.refuse?.(turn, question)) return
  const usage = (json.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true
  answer(turn, {
    question,
    stream: json.stream === true,
    format: (isChat ? chatFormat : completionFormat)(question, rules.flavour, usage),
    face: rules.face,
  })
}

const embed = (turn: Turn, rules: OpenAiRules): void => {
  const { json } = turn
  const model = rules.choose(turn)
  if (!model) return
  const texts = (Array.isArray(json.input) ? json.input : [json.input]).map(promptText)
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0)
  const vector = (text: string): unknown => {
    const values = embeddingOf(text)
    return json.encoding_format === 'base64' ? Buffer.from(new Float32Array(values).buffer).toString('base64') : values
  }
  serveSilently(turn, rules.face, { model, promptTokens: Math.max(1, tokens) }, () =>
    sendJson(turn, {
      object: 'list',
      data: texts.map((text, index) => ({ object: 'embedding', index, embedding: vector(text) })),
      model: model.name,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }),
  )
}

/** True when the path was one of the OpenAI inference routes. */
export const openAiRoute = (turn: Turn, rules: OpenAiRules): boolean => {
  if (turn.request.method !== 'POST') return false
  switch (turn.request.path.replace(/^\/v1/, '')) {
    case '/chat/completions':
      ask(turn, rules, true)
      return true
    case '/completions':
      ask(turn, rules, false)
      return true
    case '/embeddings':
      embed(turn, rules)
      return true
    default:
      return false
  }
}

/** Errors in OpenAI's shape. */
export const openAiError = (type: string, message: string, code: string | number | null, more: object = {}) => ({
  error: { message, type, param: null, code, ...more },
})
