import type { ConfigProblem, Fact, FactOf, TerminalStatus } from '../domain/facts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** Keys are snake_case; nothing in them was written by a user's prompt or a model. */
export type Fields = Readonly<Record<string, unknown>>

const END_LEVELS: Readonly<Record<TerminalStatus, Level>> = {
  completed: 'info',
  client_disconnected: 'info',
  rejected: 'info',
  incomplete: 'warn',
  failed: 'warn',
  expired: 'warn',
}

/**
 * That a request took a free slot as it came stands in the line of its end; a held one is looked at again and again. News
 * is what goes another way.
 */
const isNews = ({ cause, decision: { kind } }: FactOf<'request.placed'>): boolean => {
  if (cause === 'arrival') return kind !== 'start'
  return cause !== 'hold' || kind === 'start' || kind === 'load'
}

/** At which level a fact is told. Known without building the line, so that a silent level costs nothing. */
export const levelOf = (fact: Fact): Level => {
  switch (fact.type) {
    case 'request.arrived':
    case 'request.phase':
      return 'debug'
    case 'request.placed':
      return isNews(fact) ? 'info' : 'debug'
    case 'request.settled':
      return END_LEVELS[fact.outcome.end]
    case 'attempt.failed':
    case 'load.failed':
      return 'warn'
    case 'node.health':
      return fact.health === 'offline' || fact.health === 'suspect' ? 'warn' : 'info'
    case 'node.breaker':
      return fact.breaker === 'open' ? 'warn' : 'info'
    case 'actor.failed':
    case 'config.rejected':
      return 'error'
    default:
      return 'info'
  }
}

/** What the line of a fact says besides its time, its level and its type. */
export const fieldsOf = (fact: Fact): Fields => {
  switch (fact.type) {
    case 'request.arrived':
      return {
        request: fact.job.id,
        model: fact.job.asked,
        operation: fact.job.operation,
        stream: fact.job.stream,
        priority: fact.job.priority,
        key: fact.job.key,
        client_request_id: fact.job.clientRequestId,
      }
    case 'request.placed':
      return placed(fact)
    case 'attempt.failed': {
      const { class: kind, message, status, bytes, elapsedMs } = fact.failure
      const { request, node, model, attempt, retried } = fact
      return {
        request,
        node,
        model,
        attempt,
        reason: kind,
        message,
        status,
        bytes,
        elapsed_ms: rounded(elapsedMs),
        retried,
      }
    }
    case 'request.settled':
      return settled(fact)
    case 'request.phase': {
      const { request, node, model, phase, estimate } = fact
      return { request, node, model, phase, estimate_ms: estimate && rounded(estimate.valueMs) }
    }
    case 'node.breaker':
      return {
        node: fact.node,
        breaker: fact.breaker,
        reason: fact.reason,
        retry_in_ms: fact.retryAt === undefined ? undefined : rounded(fact.retryAt - fact.at),
      }
    case 'turn.began':
      return { node: fact.node, model: fact.model, waited_ms: rounded(fact.waitedMs) }
    case 'load.finished':
      return { node: fact.node, model: fact.model, took_ms: rounded(fact.tookMs) }
    case 'load.failed':
      return { node: fact.node, model: fact.model, took_ms: rounded(fact.tookMs), reason: fact.message }
    case 'load.started':
      return { node: fact.node, model: fact.model, reason: fact.cause, evicts: fact.evicts }
    case 'actor.failed':
      return { actor: fact.actor, machine: fact.machine, reason: fact.message, restarted: fact.restarted }
    case 'config.rejected':
      return { cause: fact.cause, problems: fact.problems.map(problemText) }
    case 'fleet.draining':
      return { running: fact.running, grace_ms: fact.graceMs }
    default: {
      const { type: _type, at: _at, ...fields } = fact
      return fields
    }
  }
}

const problemText = ({ file, line, column, message }: ConfigProblem): string =>
  [[file, line, column].filter((part) => part !== undefined).join(':'), message].filter(Boolean).join(': ')

const placed = ({ request, cause, attempt, policy, verdicts, decision, tookMs }: FactOf<'request.placed'>): Fields => ({
  request,
  node: decision.node,
  model: decision.model,
  reason: decision.reason,
  decision: decision.kind,
  cause,
  attempt,
  policy,
  candidates: verdicts.length,
  evicts: decision.evicts?.length ? decision.evicts : undefined,
  took_ms: rounded(tookMs),
})

const settled = ({ request, at, arrivedAt, asked, outcome, residency }: FactOf<'request.settled'>): Fields => ({
  request,
  node: outcome.node,
  model: outcome.model ?? asked,
  end: outcome.end,
  status: outcome.status,
  reason: outcome.code,
  message: outcome.message,
  residency,
  total_ms: rounded(at - arrivedAt),
  ttft_ms: outcome.ttftMs === undefined ? undefined : rounded(outcome.ttftMs),
  tokens_in: outcome.tokensIn,
  tokens_out: outcome.tokensOut,
  bytes: outcome.bytes,
  retries: outcome.retries,
})

const rounded = (ms: number): number => Math.round(ms * 100) / 100
