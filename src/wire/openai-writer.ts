/** Canonical events -> what an OpenAI chat client reads, as chunks of a stream or as one object. */
import type { FinishReason } from './canonical'
import type { Json } from './json/values'
import { compact } from './json/values'
import type { ReplyWriter, UsageEvent } from './replies'
import { emptyAnswer, gather } from './replies'

export interface OpenAiAnswer {
  /** Ours; the answer's id is derived from it. */
  readonly request: string
  /** Seconds since the epoch. */
  readonly created: number
  /** As the client asked for it. */
  readonly model: string
  /** The client wants the usage chunk of a stream. */
  readonly includeUsage: boolean
}

const answerId = (request: string): string => `chatcmpl-${request.replace(/^req_/, '')}`

export const writeUsage = (usage: UsageEvent | undefined): Json => {
  const { tokensIn = 0, tokensOut = 0, cachedIn, reasoningOut } = usage ?? {}
  return compact({
    prompt_tokens: tokensIn,
    completion_tokens: tokensOut,
    total_tokens: tokensIn + tokensOut,
    prompt_tokens_details: cachedIn === undefined ? undefined : { cached_tokens: cachedIn },
    completion_tokens_details: reasoningOut === undefined ? undefined : { reasoning_tokens: reasoningOut },
  })
}

/** One id, one `created`, the role in the first delta only, `[DONE]` last. */
export const createOpenAiStreamWriter = (answer: OpenAiAnswer): ReplyWriter => {
  const head = {
    id: answerId(answer.request),
    object: 'chat.completion.chunk',
    created: answer.created,
    model: answer.model,
  }
  let begun = false
  let finish: FinishReason | undefined
  let usage: UsageEvent | undefined

  const event = (data: Json): string => `data: ${JSON.stringify({ ...head, ...data })}\n\n`
  const chunk = (delta: Json, reason: FinishReason | null = null, logprobs?: readonly unknown[]): string =>
    event({
      choices: [{ index: 0, delta, ...(logprobs && { logprobs: { content: logprobs } }), finish_reason: reason }],
    })
  const opened = (text: string): string => {
    if (begun) return text
    begun = true
    return chunk({ role: 'assistant', content: '' }) + text
  }

  return {
    write(reply) {
      switch (reply.type) {
        case 'text':
          return opened(chunk({ content: reply.text }, null, reply.logprobs))
        case 'reasoning':
          return opened(chunk({ reasoning_content: reply.text }))
        case 'call': {
          const { index, id, name } = reply
          return opened(
            chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: reply.arguments } }] }),
          )
        }
        case 'arguments':
          return opened(chunk({ tool_calls: [{ index: reply.index, function: { arguments: reply.fragment } }] }))
        case 'finish':
          finish = reply.reason
          return opened(chunk({}, finish))
        case 'usage':
          usage = reply
          return ''
        case 'done':
        case 'error':
          return ''
      }
    },
    end: () =>
      (finish === undefined ? opened(chunk({}, 'stop')) : '') +
      (answer.includeUsage ? event({ choices: [], usage: writeUsage(usage) }) : '') +
      'data: [DONE]\n\n',
  }
}

export const createOpenAiWholeWriter = (answer: OpenAiAnswer): ReplyWriter => {
  const whole = emptyAnswer()
  return {
    write(event) {
      gather(whole, event)
      return ''
    },
    end() {
      const { text, reasoning, calls, logprobs } = whole
      const message = compact({
        role: 'assistant',
        content: text === '' && calls.length > 0 ? null : text,
        reasoning_content: reasoning === '' ? undefined : reasoning,
        refusal: null,
        tool_calls:
          calls.length === 0
            ? undefined
            : calls.map((call) => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: call.arguments },
              })),
      })
      return JSON.stringify({
        id: answerId(answer.request),
        object: 'chat.completion',
        created: answer.created,
        model: answer.model,
        choices: [
          {
            index: 0,
            message,
            logprobs: logprobs.length > 0 ? { content: logprobs } : null,
            finish_reason: whole.finish ?? 'stop',
          },
        ],
        usage: writeUsage(whole.usage),
      })
    },
  }
}
