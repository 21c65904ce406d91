/** Canonical events -> what an OpenAI chat client reads, as chunks of a stream or as one object. */
import type { FinishReason } from './canonical'
import { customInput } from './custom-tools'
import type { Json } from './json/values'
import { compact } from './json/values'
import type { ReplyWriter, UsageEvent } from './replies'
import type { Gathered } from './replies'
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
  /** Tools whose calls the client knows as free text. */
  readonly customTools?: ReadonlySet<string>
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

type Call = Gathered['calls'][number]

const writeCall = ({ id, name, arguments: text }: Call, isCustom: boolean): Json =>
  isCustom
    ? { id, type: 'custom', custom: { name, input: customInput(text) } }
    : { id, type: 'function', function: { name, arguments: text } }

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
  /** Calls of custom tools by their index: their text is in the arguments, and known once these are whole. */
  const held = new Map<number, Call>()

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
  const call = (index: number, said: Json): string => opened(chunk({ tool_calls: [{ index, ...said }] }))
  const heldInputs = (): string => {
    const inputs = [...held].map(([index, { arguments: text }]) =>
      call(index, { custom: { input: customInput(text) } }),
    )
    held.clear()
    return inputs.join('')
  }

  return {
    write(reply) {
      switch (reply.type) {
        case 'text':
          return opened(chunk({ content: reply.text }, null, reply.logprobs))
        case 'reasoning':
          return opened(chunk({ reasoning_content: reply.text }))
        case 'call': {
          const { index, id, name, arguments: text } = reply
          if (!answer.customTools?.has(name)) return call(index, writeCall(reply, false))
          held.set(index, { id, name, arguments: text })
          return call(index, { id, type: 'custom', custom: { name, input: '' } })
        }
        case 'arguments': {
          const custom = held.get(reply.index)
          if (!custom) return call(reply.index, { function: { arguments: reply.fragment } })
          custom.arguments += reply.fragment
          return ''
        }
        case 'finish':
          finish = reply.reason
          return heldInputs() + opened(chunk({}, finish))
        case 'usage':
          usage = reply
          return ''
        case 'done':
        case 'error':
          return ''
      }
    },
    end: () =>
      heldInputs() +
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
            : calls.map((call) => writeCall(call, answer.customTools?.has(call.name) === true)),
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
