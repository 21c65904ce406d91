import type { FakeModel } from './options'

/** UTF-8 bytes that the fakes count as one token. */
const BYTES_PER_TOKEN = 4
const THINKING_TOKENS = 6
const DIMENSIONS = 16
/** What a model thinks whose answer is given. */
const SIMULATED_THOUGHT = 'This is a simulated thought; nothing was computed.'

export interface Tool {
  readonly name: string
  readonly parameters: unknown
}

/** What a client asked, whatever the API. Lives only as long as the request. */
export interface Question {
  readonly model: FakeModel
  /** Everything that goes into the prompt. */
  readonly text: string
  /** The last user message; empty when the last message is not the user's. */
  readonly last: string
  readonly tools: readonly Tool[]
  readonly images: number
  readonly think: boolean
  readonly maxTokens?: number
  /** A JSON schema, or true for any JSON. */
  readonly json?: unknown
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The whole answer, known beforehand: thinking first, then words or calls. */
export interface Script {
  readonly thinking: readonly string[]
  readonly words: readonly string[]
  readonly calls: readonly ToolCall[]
  readonly promptTokens: number
  readonly finish: 'stop' | 'length' | 'tool_calls'
}

export interface ScriptOptions {
  readonly answerTokens: number | readonly [min: number, max: number]
  readonly answer?: (prompt: string, model: string) => string
}

export const countTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)

/** Four hex digits that tell one prompt from another. */
export const promptTag = (text: string): string => (Bun.hash.crc32(text) & 0xffff).toString(16).padStart(4, '0')

/** The numbered words with which a fake answers: `tok1.3fa9 tok2.3fa9 …`, so that loss, doubling and mixing show. */
export const numberedWords = (text: string, count: number): string[] => {
  const tag = promptTag(text)
  return Array.from({ length: count }, (_, index) => `${index === 0 ? '' : ' '}tok${index + 1}.${tag}`)
}

/** A value that fits a JSON schema, as far as a fake needs it. */
export const sampleOf = (schema: unknown): unknown => {
  const { type, properties, items, enum: choices } = (schema ?? {}) as Record<string, unknown>
  if (Array.isArray(choices)) return choices[0]
  if (properties && typeof properties === 'object') {
    return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, sampleOf(each)]))
  }
  if (type === 'number' || type === 'integer') return 1
  if (type === 'boolean') return true
  if (type === 'array') return items === undefined ? [] : [sampleOf(items)]
  return type === 'object' ? {} : 'sample'
}

const split = (text: string): string[] => text.match(/\s*\S+/g) ?? []

const lengthOf = ({ answerTokens }: ScriptOptions, text: string): number => {
  if (typeof answerTokens === 'number') return answerTokens
  const [min, max] = answerTokens
  return min + (Bun.hash.crc32(text) % (max - min + 1))
}

const wordsOf = (question: Question, options: ScriptOptions): string[] => {
  const { json, text, model } = question
  if (json !== undefined && json !== false) {
    const value = json === true ? { answer: 'sample' } : sampleOf(json)
    return JSON.stringify(value).match(/.{1,4}/gs) ?? []
  }
  if (options.answer) return split(options.answer(text, model.name))
  return numberedWords(text, lengthOf(options, text))
}

/** Tools are called when they are offered and the last user message says `call <name>`. */
const callsOf = (question: Question): ToolCall[] =>
  question.tools
    .filter((tool) => new RegExp(`\\bcall ${RegExp.escape(tool.name)}\\b`).test(question.last))
    .map((tool, index) => ({
      id: `call_${promptTag(question.text)}${index}`,
      name: tool.name,
      arguments: (sampleOf(tool.parameters) ?? {}) as Record<string, unknown>,
    }))

const thoughtsOf = (question: Question, options: ScriptOptions): string[] => {
  if (options.answer) return split(SIMULATED_THOUGHT)
  const tag = promptTag(question.text)
  return Array.from({ length: THINKING_TOKENS }, (_, index) => `${index === 0 ? '' : ' '}think${index + 1}.${tag}`)
}

export const writeScript = (question: Question, options: ScriptOptions): Script => {
  const promptTokens = Math.max(1, countTokens(question.text))
  const thinking = question.think ? thoughtsOf(question, options) : []
  const calls = callsOf(question)
  if (calls.length > 0) return { thinking, words: [], calls, promptTokens, finish: 'tool_calls' }
  const words = wordsOf(question, options)
  const limit = question.maxTokens ?? Number.POSITIVE_INFINITY
  if (limit < 0 || thinking.length + words.length <= limit)
    return { thinking, words, calls, promptTokens, finish: 'stop' }
  return {
    thinking: thinking.slice(0, limit),
    words: words.slice(0, Math.max(0, limit - thinking.length)),
    calls,
    promptTokens,
    finish: 'length',
  }
}

/** How many tokens the engine has to make: a call counts as one. */
export const scriptTokens = (script: Script): number =>
  Math.max(1, script.thinking.length + script.words.length + script.calls.length)

/** A unit vector that belongs to the text. */
export const embeddingOf = (text: string): number[] => {
  const raw = Array.from({ length: DIMENSIONS }, (_, index) => Bun.hash.crc32(`${index}:${text}`) / 2 ** 31 - 1)
  const length = Math.hypot(...raw) || 1
  return raw.map((value) => value / length)
}
