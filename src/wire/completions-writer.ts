/** Canonical events -> what a client of OpenAI's legacy completions reads, as chunks of a stream or as one object. */
import type { FinishReason } from './canonical'
import type { Json } from './json/values'
import { isObject } from './json/values'
import type { OpenAiAnswer } from './openai-writer'
import { writeUsage } from './openai-writer'
import type { ReplyWriter } from './replies'
import { emptyAnswer, gather } from './replies'

export interface CompletionAnswer extends OpenAiAnswer {
  /** Stands before the model's own text. */
  readonly prefix: string
}

/** Names of reasons that exist here. */
const reasons: Readonly<Record<FinishReason, string>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'stop',
  content_filter: 'content_filter',
}

const byToken = (entries: readonly unknown[]): Json =>
  Object.fromEntries(entries.filter(isObject).map(({ token, logprob }) => [String(token), logprob]))

/** The chat endpoint has one object a token, this one a list for each member. `offset` in characters. */
const writeLogprobs = (logprobs: readonly unknown[], offset: number): Json => {
  const entries = logprobs.filter(isObject)
  const tokens = entries.map(({ token }) => String(token))
  let at = offset
  return {
    tokens,
    token_logprobs: entries.map(({ logprob }) => logprob ?? null),
    top_logprobs: entries.map(({ top_logprobs: top }) => (Array.isArray(top) ? byToken(top) : null)),
    text_offset: tokens.map((token) => {
      at += token.length
      return at - token.length
    }),
  }
}

const createWriter = (answer: CompletionAnswer, streams: boolean): ReplyWriter => {
  const whole = emptyAnswer()
  let sent = 0

  const object = (choices: readonly Json[], more: Json = {}): string =>
    JSON.stringify({
      id: `cmpl-${answer.request.replace(/^req_/, '')}`,
      object: 'text_completion',
      created: answer.created,
      model: answer.model,
      choices,
      ...more,
    })
  const choice = (text: string, reason: FinishReason | null, logprobs: readonly unknown[] = []): Json => ({
    index: 0,
    text,
    logprobs: logprobs.length > 0 ? writeLogprobs(logprobs, answer.prefix.length + sent) : null,
    finish_reason: reason === null ? null : reasons[reason],
  })
  const event = (data: string): string => `data: ${data}\n\n`

  return {
    write(reply) {
      gather(whole, reply)
      if (!streams || reply.type !== 'text') return ''
      const prefix = sent === 0 ? answer.prefix : ''
      const text = event(object([choice(prefix + reply.text, null, reply.logprobs)]))
      sent += reply.text.length
      return text
    },
    end() {
      const finish = whole.finish ?? 'stop'
      if (!streams) {
        const all = choice(answer.prefix + whole.text, finish, whole.logprobs)
        return object([all], { usage: writeUsage(whole.usage) })
      }
      const last = event(object([choice(sent === 0 ? answer.prefix : '', finish)]))
      const usage = answer.includeUsage ? event(object([], { usage: writeUsage(whole.usage) })) : ''
      return `${last}${usage}${event('[DONE]')}`
    },
  }
}

export const createCompletionStreamWriter = (answer: CompletionAnswer): ReplyWriter => createWriter(answer, true)

export const createCompletionWholeWriter = (answer: CompletionAnswer): ReplyWriter => createWriter(answer, false)
