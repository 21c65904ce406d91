import { RouterError } from '../domain/errors'
import { recordModel } from '../domain/record-keys'
import type { DecisionRecord } from '../domain/record'
import type { Clock } from '../ports/clock'
import type { Reply } from '../ports/node-gateway'
import type { Exchange } from '../wire/exchange'
import { parseReply } from '../wire/json/values'
import { errorOf } from '../wire/replies'

/** Between two comments, in ms: what lies between us and a client may cut a connection that is silent for much longer. */
const COMMENT_EVERY_MS = 5_000

interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason?: unknown): Promise<void>
}
type Outcome = { readonly reply: Reply } | { readonly error: RouterError }

/** The reply if it begins within `ms`, else undefined; rejects as it does. */
export const within = (submitted: Promise<Reply>, ms: number, clock: Clock): Promise<Reply | undefined> =>
  new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => resolve(undefined), ms)
    submitted.then(resolve, reject).finally(() => clock.clearTimeout(timer))
  })

const PLAIN: Readonly<Record<string, string>> = {
  placing: 'choosing a node',
  held: 'waiting for a node',
  waiting: 'waiting for a slot',
  prefill: 'reading the prompt',
  generating: 'answering',
}

/** What a request waits for, for people: `loading qwen3:8b on box-2, 12 s`. One line, whatever stands in a name. */
export const noteOf = (record: DecisionRecord, now: number): string => {
  const phase = record.phases.at(-1)
  const what = phase?.name === 'loading' ? `loading ${recordModel(record)}` : PLAIN[phase?.name ?? 'placing']
  const where = phase?.node === undefined ? '' : ` on ${phase.node}`
  const seconds = Math.max(0, Math.round((now - record.at) / 1_000))
  return `${what}${where}, ${seconds} s`.replace(/\s+/g, ' ')
}

/** A node's own refusal, once the status can tell it no more. */
const rejected = async ({ status, body }: Reply, requestId: string): Promise<RouterError> => {
  const said = errorOf(parseReply(await new Response(body).text()) ?? {})
  const message = said?.message ?? `The node refused the request with status ${status}.`
  return new RouterError('upstream_rejected', message, { status, requestId })
}

export interface WaitingOptions {
  readonly exchange: Exchange & Required<Pick<Exchange, 'keepAlive'>>
  readonly submitted: Promise<Reply>
  readonly clock: Clock
  /** What is being waited for now; undefined says nothing. */
  note(): string | undefined
  /** The client reads no more. */
  left(): void
}

/**
 * The body of an answer whose headers are sent before there is one: comments until it begins, then the answer's own bytes
 * as they come, or the error as an event of the protocol. Nothing is made ahead of what the client reads.
 */
export const waitingBody = (options: WaitingOptions): ReadableStream<Uint8Array> => {
  const { exchange, submitted, clock, note, left } = options
  const requestId = exchange.job.id
  const outcome = submitted.then(
    (reply): Outcome => ({ reply }),
    (error: unknown): Outcome => ({ error: RouterError.from(error) }),
  )
  let reader: Reader | undefined
  let isFirst = true

  /** The outcome, or undefined when it is time for a comment. */
  const next = (): Promise<Outcome | undefined> => {
    if (isFirst) {
      isFirst = false
      return Promise.resolve(undefined)
    }
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(undefined), COMMENT_EVERY_MS)
      void outcome.then((known) => {
        clock.clearTimeout(timer)
        resolve(known)
      })
    })
  }

  const end = (controller: ReadableStreamDefaultController<Uint8Array>, last: Uint8Array): void => {
    controller.enqueue(last)
    controller.close()
  }

  const begin = async (controller: ReadableStreamDefaultController<Uint8Array>, known: Outcome): Promise<void> => {
    if ('error' in known) return end(controller, exchange.inBandError(known.error.with({ requestId })))
    const { reply } = known
    if (reply.status >= 400) return end(controller, exchange.inBandError(await rejected(reply, requestId)))
    if (reply.body instanceof Uint8Array) return end(controller, reply.body)
    const from: Reader = reply.body.getReader()
    reader = from
    await relay(controller, from)
  }

  const relay = async (controller: ReadableStreamDefaultController<Uint8Array>, from: Reader): Promise<void> => {
    const { done, value } = await from.read()
    if (done || value === undefined) controller.close()
    else controller.enqueue(value)
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (reader) return relay(controller, reader)
        const known = await next()
        if (known) await begin(controller, known)
        else controller.enqueue(exchange.keepAlive(note()))
      },
      cancel(reason) {
        left()
        return reader?.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
