import { answer, type Format } from './answer'
import type { FakeModel } from './options'
import type { OpenAiRules } from './openai-routes'
import { countTokens, promptTag, type Question, type Script, type ToolCall } from './question'
import { sendError, sendJson, type Turn } from './turn'
import type { Stats } from './work'

type Json = Readonly<Record<string, unknown>>

interface Block {
  readonly type?: string
  readonly text?: string
  readonly content?: string | readonly Block[]
}

const REASONS: Readonly<Record<Script['finish'], string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
}

const blocksOf = (content: unknown): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : ((content ?? []) as readonly Block[])

const textOf = (content: unknown): string =>
  blocksOf(content)
    .map((block) => block.text ?? textOf(block.content))
    .join('')

const questionOf = (json: Json, model: FakeModel): Question => {
  const messages = json.messages as readonly { role?: string; content?: unknown }[]
  const tools = (json.tools ?? []) as readonly { name?: string; input_schema?: unknown }[]
  const last = messages.at(-1)
  return {
    model,
    text: [textOf(json.system), ...messages.map(({ content }) => textOf(content))].join('\n'),
    last: last?.role === 'user' ? textOf(last.content) : '',
    tools: tools.map(({ name = '', input_schema: parameters }) => ({ name, parameters })),
    images: messages.flatMap(({ content }) => blocksOf(content)).filter(({ type }) => type === 'image').length,
    think: model.capabilities?.includes('thinking') ?? false,
    ...(typeof json.max_tokens === 'number' ? { maxTokens: json.max_tokens } : {}),
  }
}

const callBlock = ({ id, name }: ToolCall, input: unknown) => ({ type: 'tool_use', id, name, input })

/** `/v1/messages` as llama-server writes it: one block at a time, the tokens of the prompt in the first event. */
const messagesFormat = (question: Question): Format => {
  const base = {
    id: `chatcmpl-${promptTag(question.text)}`,
    type: 'message',
    role: 'assistant',
    model: question.model.name,
  }
  const promptTokens = Math.max(1, countTokens(question.text))
  const usage = { cache_read_input_tokens: 0, input_tokens: promptTokens, output_tokens: 0 }
  let index = -1
  let open: 'text' | 'thinking' | undefined

  const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
  const delta = (value: object): string => event('content_block_delta', { index, delta: value })
  const close = (): string => {
    if (open === undefined) return ''
    const signature = open === 'thinking' ? delta({ type: 'signature_delta', signature: '' }) : ''
    open = undefined
    return signature + event('content_block_stop', { index })
  }
  const begin = (block: object): string => {
    const closed = close()
    index += 1
    return closed + event('content_block_start', { index, content_block: block })
  }
  const callEvents = (call: ToolCall): string =>
    begin(callBlock(call, {})) +
    delta({ type: 'input_json_delta', partial_json: JSON.stringify(call.arguments) }) +
    event('content_block_stop', { index })
  const stopOf = (script: Script) => ({ stop_reason: REASONS[script.finish], stop_sequence: null })

  return {
    streamType: 'text/event-stream',
    opening: () => [
      event('message_start', { message: { ...base, content: [], stop_reason: null, stop_sequence: null, usage } }),
    ],
    piece(kind, words) {
      const start = kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '', signature: '' }
      const opened = open === kind ? '' : begin(start)
      open = kind
      return (
        opened +
        delta(kind === 'text' ? { type: 'text_delta', text: words } : { type: 'thinking_delta', thinking: words })
      )
    },
    calls: (script) => script.calls.map(callEvents),
    closing: (script, stats) => [
      ...(open === undefined ? [] : [close()]),
      event('message_delta', { delta: stopOf(script), usage: { output_tokens: stats.tokens } }),
      event('message_stop', {}),
    ],
    whole: (script, stats: Stats) => ({
      ...base,
      content: [
        ...(script.thinking.length > 0
          ? [{ type: 'thinking', thinking: script.thinking.join(''), signature: '' }]
          : []),
        ...(script.calls.length > 0
          ? script.calls.map((call) => callBlock(call, call.arguments))
          : [{ type: 'text', text: script.words.join('') }]),
      ],
      ...stopOf(script),
      usage: { ...usage, output_tokens: stats.tokens },
    }),
  }
}

const ask = (turn: Turn, rules: OpenAiRules) => {
  const { json } = turn
  if (!Array.isArray(json.messages)) return sendError(turn, rules.face, 500, "'messages' is required")
  const model = rules.choose(turn)
  if (!model) return
  const question = questionOf(json, model)
  if (rules.refuse?.(turn, question)) return
  answer(turn, { question, stream: json.stream === true, format: messagesFormat(question), face: rules.face })
}

/** True when the path was one of Anthropic's. */
export const anthropicRoute = (turn: Turn, rules: OpenAiRules): boolean => {
  if (turn.request.method !== 'POST') return false
  if (turn.request.path === '/v1/messages') {
    ask(turn, rules)
    return true
  }
  if (turn.request.path !== '/v1/messages/count_tokens') return false
  sendJson(turn, { input_tokens: countTokens(JSON.stringify(turn.json.messages ?? '')) })
  return true
}
