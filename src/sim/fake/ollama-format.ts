import type { Format } from './answer'
import type { Stats } from './work'
import type { Script } from './question'

const NS_PER_MS = 1e6

const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms * NS_PER_MS))

const metricsOf = (stats: Stats) => ({
  total_duration: nanoseconds(stats.totalMs),
  ...(stats.loadMs > 0 ? { load_duration: nanoseconds(stats.loadMs) } : {}),
  prompt_eval_count: stats.promptTokens,
  prompt_eval_duration: nanoseconds(stats.promptMs),
  eval_count: stats.tokens,
  eval_duration: nanoseconds(stats.decodeMs),
})

/** Ollama knows no reason of its own for tool calls. */
const reasonOf = (script: Script): string => (script.finish === 'length' ? 'length' : 'stop')

const callsOf = (script: Script) =>
  script.calls.map((call, index) => ({ id: call.id, function: { index, name: call.name, arguments: call.arguments } }))

const line = (value: unknown): string => `${JSON.stringify(value)}\n`

/** What chat and generate share; answers name the model as the client wrote it. `member` puts content and thinking where the endpoint has them. */
const ndjson = (
  asked: string,
  member: (content: string, thinking: string | undefined, calls?: unknown) => object,
): Format => {
  const head = () => ({ model: asked, created_at: new Date().toISOString() })
  const last = (script: Script, stats: Stats, content: object) => ({
    ...head(),
    ...content,
    done: true,
    done_reason: reasonOf(script),
    ...metricsOf(stats),
  })
  return {
    streamType: 'application/x-ndjson',
    opening: () => [],
    piece: (kind, words) =>
      line({ ...head(), ...(kind === 'text' ? member(words, undefined) : member('', words)), done: false }),
    calls: (script) =>
      script.calls.length > 0 ? [line({ ...head(), ...member('', undefined, callsOf(script)), done: false })] : [],
    closing: (script, stats) => [line(last(script, stats, member('', undefined)))],
    whole: (script, stats) => {
      const thinking = script.thinking.length > 0 ? script.thinking.join('') : undefined
      const calls = script.calls.length > 0 ? callsOf(script) : undefined
      return last(script, stats, member(script.words.join(''), thinking, calls))
    },
  }
}

export const ollamaChatFormat = (asked: string): Format =>
  ndjson(asked, (content, thinking, calls) => ({
    message: {
      role: 'assistant',
      content,
      ...(thinking === undefined ? {} : { thinking }),
      ...(calls === undefined ? {} : { tool_calls: calls }),
    },
  }))

export const ollamaGenerateFormat = (asked: string): Format =>
  ndjson(asked, (content, thinking) => ({ response: content, ...(thinking === undefined ? {} : { thinking }) }))
