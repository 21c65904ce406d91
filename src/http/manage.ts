import { RouterError, statusOf } from '../domain/errors'
import type { Failure, Outcome } from '../domain/facts'
import type { NodeDescription } from '../domain/node'
import type { Clock } from '../ports/clock'
import type { Journal } from '../ports/journal'
import type { NodeGateway, Reply } from '../ports/node-gateway'
import type { Exchange, Exchanges } from '../wire/exchange'

export interface ManageDeps {
  readonly gateway: Pick<NodeGateway, 'forward'>
  readonly exchanges: Exchanges
  readonly journal: Journal
  readonly clock: Clock
}

/**
 * Sends a call that is for one node there, once. Rejects with a `RouterError`; the signal is the client's presence. Without a
 * byte of an answer within `firstByteMs` it is given up; absent: work that may be silent for as long as it takes.
 */
export type Manage = (
  exchange: Exchange,
  node: NodeDescription,
  signal: AbortSignal,
  firstByteMs?: number,
) => Promise<Reply>

const errorOf = ({ class: kind, message }: Failure, node: string): RouterError => {
  if (kind === 'model_missing') return new RouterError('model_not_found', message, { nodes: [{ node, reason: kind }] })
  return new RouterError('upstream_failed', `${node} failed: ${message}`, {
    nodes: [{ node, reason: kind }],
    hint: 'It is not sent again by itself: part of it may have been done.',
  })
}

/** Calls that need no model in memory: they take no slot, wait for nothing, and are recorded like any other. */
export const createManage = ({ gateway, exchanges, journal, clock }: ManageDeps): Manage => {
  const run = (...[exchange, node, signal, firstByteMs]: Parameters<Manage>): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const { job } = exchange
      const { id: request, dialect, asked, priority, key, arrivedAt } = job
      const given = new AbortController()
      let isOver = false
      let timer: unknown
      const settle = (outcome: Pick<Outcome, 'end' | 'status'> & Partial<Outcome>): void => {
        if (isOver) return
        isOver = true
        clock.clearTimeout(timer)
        signal.removeEventListener('abort', left)
        journal.record({
          type: 'request.settled',
          at: clock.now(),
          request,
          dialect,
          asked,
          priority,
          ...(key === undefined ? {} : { key }),
          arrivedAt,
          outcome: { node: node.name, phase: 'generating', bytes: 0, retries: 0, ...outcome },
        })
      }
      const refuse = (error: RouterError, end: Outcome['end']): void => {
        settle({ end, status: statusOf(error.code, dialect), code: error.code, message: error.message })
        reject(error)
      }
      const giveUp = (error: RouterError, end: Outcome['end']): void => {
        refuse(error, end)
        given.abort()
      }
      const left = (): void => giveUp(new RouterError('client_disconnected', 'The client left.'), 'client_disconnected')
      const silent = (): void => {
        const message = `${node.name} sent no first byte within ${Math.round(Number(firstByteMs) / 1000)} s (limits.first_token_timeout).`
        giveUp(new RouterError('upstream_timeout', message), 'failed')
      }

      if (firstByteMs !== undefined) timer = clock.setTimeout(silent, firstByteMs)
      if (signal.aborted) given.abort()
      signal.addEventListener('abort', left, { once: true })
      journal.record({ type: 'request.arrived', at: clock.now(), job })
      journal.record({ type: 'request.phase', at: clock.now(), request, phase: 'generating', node: node.name })
      gateway.forward(
        { request, attempt: 1, node, model: asked },
        {
          started: (reply) => {
            clock.clearTimeout(timer)
            resolve(reply)
          },
          finished: ({ end, status, bytes, failure }) =>
            settle({ end, status, bytes, ...(failure && { code: failure.class, message: failure.message }) }),
          failed: (failure, rejected) => {
            if (rejected === undefined) {
              const error = errorOf(failure, node.name)
              return refuse(error, error.code === 'model_not_found' ? 'rejected' : 'failed')
            }
            settle({ end: 'rejected', status: rejected.status, code: 'upstream_rejected', message: failure.message })
            resolve(rejected)
          },
          refused: (error) => refuse(error, 'rejected'),
          left: (bytes) => settle({ end: 'client_disconnected', status: 499, code: 'client_disconnected', bytes }),
        },
        given.signal,
      )
    })

  return async (exchange, ...rest) => {
    exchanges.set(exchange.job.id, exchange)
    try {
      return await run(exchange, ...rest)
    } finally {
      exchanges.delete(exchange.job.id)
    }
  }
}
