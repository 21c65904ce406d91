import type { Format } from './answer'
import { promptTag, type Question, type Script, type ToolCall } from './question'
import type { Stats } from './work'

/** What differs between the engines that speak OpenAI. */
export interface Flavour {
  /** Where thinking goes. */
  readonly thinking: 'reasoning' | 'reasoning_content'
  readonly fingerprint: string
  /** llama.cpp reports its speeds in the last chunk. */
  readonly timings: boolean
}

const sse = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

const DONE = 'data: [DONE]\n\n'

const usageOf = (script: Script, stats: Stats) => ({
  prompt_tokens: script.promptTokens,
  completion_tokens: stats.tokens,
  total_tokens: script.promptTokens + stats.tokens,
  prompt_tokens_details: { cached_tokens: 0 },
})

const perSecond = (tokens: number, ms: number): number => (ms > 0 ? (tokens * 1000) / ms : 0)

const timingsOf = (stats: Stats) => ({
  cache_n: 0,
  prompt_n: stats.promptTokens,
  prompt_ms: stats.promptMs,
  prompt_per_second: perSecond(stats.promptTokens, stats.promptMs),
  predicted_n: stats.tokens,
  predicted_ms: stats.decodeMs,
  predicted_per_second: perSecond(stats.tokens, stats.decodeMs),
})

const openAiCall = (call: ToolCall) => ({
  id: call.id,
  type: 'function',
  function: { name: call.name, arguments: JSON.stringify(call.arguments) },
})

/** The fragments of one call as servers stream it: head first, then the arguments in two parts. */
const callDeltas = (call: ToolCall, index: number): unknown[] => {
  const text = JSON.stringify(call.arguments)
  const middle = Math.ceil(text.length / 2)
  const head = { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }
  const parts = [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '')
  return [head, ...parts.map((part) => ({ index, function: { arguments: part } }))]
}

/** `/v1/chat/completions`. `usage`: the client asked for the extra chunk. */
export const chatFormat = (question: Question, flavour: Flavour, usage: boolean): Format => {
  const base = {
    id: `chatcmpl-${promptTag(question.text)}${Date.now().toString(36)}`,
    created: Math.floor(Date.now() / 1000),
    model: question.model.name,
    system_fingerprint: flavour.fingerprint,
  }
  const chunk = (delta: unknown, finish: string | null = null, more: object = {}): string =>
    sse({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more })
  const timings = (stats: Stats) => (flavour.timings ? { timings: timingsOf(stats) } : {})

  return {
    streamType: 'text/event-stream',
    opening: () => [chunk({ role: 'assistant', content: '' })],
    piece: (kind, words) => chunk({ [kind === 'text' ? 'content' : flavour.thinking]: words }),
    calls: (script) => script.calls.flatMap(callDeltas).map((delta) => chunk({ tool_calls: [delta] })),
    closing: (script, stats) => [
      chunk({}, script.finish, usage ? {} : timings(stats)),
      ...(usage
        ? [
            sse({
              ...base,
              object: 'chat.completion.chunk',
              choices: [],
              usage: usageOf(script, stats),
              ...timings(stats),
            }),
          ]
        : []),
      DONE,
    ],
    whole: (script, stats) => ({
      ...base,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: script.calls.length > 0 ? null : script.words.join(''),
            ...(script.thinking.length > 0 ? { [flavour.thinking]: script.thinking.join('') } : {}),
            ...(script.calls.length > 0 ? { tool_calls: script.calls.map(openAiCall) } : {}),
          },
          logprobs: null,
          finish_reason: script.finish,
        },
      ],
      usage: usageOf(script, stats),
      ...timings(stats),
    }),
  }
}

/** `/v1/completions`. */
export const completionFormat = (question: Question, flavour: Flavour, usage: boolean): Format => {
  const base = {
    id: `cmpl-${promptTag(question.text)}${Date.now().toString(36)}`,
    object: 'text_completion',
    created: Math.floor(Date.now() / 1000),
    model: question.model.name,
    system_fingerprint: flavour.fingerprint,
  }
  const chunk = (text: string, finish: string | null = null): string =>
    sse({ ...base, choices: [{ index: 0, text, logprobs: null, finish_reason: finish }] })

  return {
    streamType: 'text/event-stream',
    opening: () => [],
    piece: (_kind, words) => chunk(words),
    calls: () => [],
    closing: (script, stats) => [
      chunk('', script.finish),
      ...(usage ? [sse({ ...base, choices: [], usage: usageOf(script, stats) })] : []),
      DONE,
    ],
    whole: (script, stats) => ({
      ...base,
      choices: [{ index: 0, text: script.words.join(''), logprobs: null, finish_reason: script.finish }],
      usage: usageOf(script, stats),
    }),
  }
}
