/** Canonical events -> what a client of our own protocol reads, as named events of a stream or as one object. */
import type { FinishReason, ReplyEvent } from './canonical'
import type { Job } from '../domain/job'
import type { Json } from './json/values'
import { compact } from './json/values'
import type { ReplyWriter, UsageEvent } from './replies'
import { emptyAnswer, gather } from './replies'

/** One server-sent event; JSON has no line ends, so its data is one line. */
export const event = (name: string, data: Json): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

const usageOf = (usage: UsageEvent | undefined): Json => {
  const { tokensIn, tokensOut, cachedIn, reasoningOut } = usage ?? {}
  return compact({ tokensIn, tokensOut, cachedIn, reasoningOut })
}

const toEvent = (reply: ReplyEvent): string => {
  switch (reply.type) {
    case 'text':
      return event('text', { text: reply.text })
    case 'reasoning':
      return event('reasoning', { text: reply.text })
    case 'call':
      return event('call', { index: reply.index, id: reply.id, name: reply.name, arguments: reply.arguments })
    case 'arguments':
      return event('arguments', { index: reply.index, fragment: reply.fragment })
    default:
      return ''
  }
}

/** `text`, `reasoning`, `call` and `arguments` as they come, `finish` with the usage at the end. */
export const createNativeStreamWriter = ({ id, asked }: Job): ReplyWriter => {
  let finish: FinishReason = 'stop'
  let usage: UsageEvent | undefined
  return {
    write(reply) {
      if (reply.type === 'finish') finish = reply.reason
      else if (reply.type === 'usage') usage = reply
      return toEvent(reply)
    },
    end: () => event('finish', { id, model: asked, reason: finish, usage: usageOf(usage) }),
  }
}

export const createNativeWholeWriter = ({ id, asked }: Job): ReplyWriter => {
  const whole = emptyAnswer()
  return {
    write(reply) {
      gather(whole, reply)
      return ''
    },
    end() {
      const { text, reasoning, calls, finish = 'stop', usage } = whole
      return JSON.stringify(
        compact({
          id,
          model: asked,
          text,
          reasoning: reasoning === '' ? undefined : reasoning,
          calls: calls.length === 0 ? undefined : calls,
          finish,
          usage: usageOf(usage),
        }),
      )
    },
  }
}
