import { modelKey } from '../../src/domain/job'
import type { DispatcherEvent } from '../protocol'
import type { Turn } from './context'

/** An engine that was writing notices a closed connection at its next write: so long, in ms, its slot stays taken. */
const LINGER_DECODE_MS = 100
/** One that was reading a prompt may go on until the first token; then only its next report, or this, frees the slot. */
const LINGER_PREFILL_MS = 20_000
/** The same for engines that notice at once. */
const LINGER_PREFILL_PROMPT_MS = 250

type Freed = Extract<DispatcherEvent, { type: 'slot.freed' }>
type Reported = Extract<DispatcherEvent, { type: 'node.reported' }>

/** A running request has ended. One whose client left keeps its slot until the engine has surely stopped. */
export const releaseSlot = (turn: Turn, { request, attempt, linger }: Freed): void => {
  const { context, api } = turn
  const held = context.ledger.held(request)
  if (held === undefined || held.attempt !== attempt || held.state === 'lingering') return
  if (linger === undefined) {
    context.ledger.release(request)
    return
  }
  const slowToNotice = context.roster.get(held.node)?.description.kind === 'ollama'
  const ms = linger === 'decode' ? LINGER_DECODE_MS : slowToNotice ? LINGER_PREFILL_MS : LINGER_PREFILL_PROMPT_MS
  const since = context.now()
  context.ledger.linger(request)
  context.lingering.set(request, { since, until: since + ms, untilReport: linger === 'prefill' })
  api.later({ type: 'linger.ended' }, ms, `linger.${request}`)
}

/** Frees the slots whose time has come. */
export const settleLingering = ({ context }: Turn): void => {
  const now = context.now()
  for (const [request, { until }] of context.lingering) {
    if (until > now) continue
    context.lingering.delete(request)
    context.ledger.release(request)
  }
}

/**
 * A poll has come back: foreign load is what the engine runs beyond ours, and slots that lingered are free once a poll
 * that began after the cancel shows the node answering and, where it counts, not running them.
 */
export const onReport = ({ context, api }: Turn, { node, report, startedAt }: Reported): void => {
  const counted = new Set<string>()
  for (const { name, running } of report.resident) {
    if (running === undefined) continue
    counted.add(modelKey(name))
    let gone = context.ledger.observe(node, name, running)
    for (const held of context.ledger.on(node, name)) {
      if (gone <= 0) break
      if (held.state !== 'lingering' || (context.lingering.get(held.request)?.since ?? 0) >= startedAt) continue
      gone -= 1
      context.lingering.delete(held.request)
      context.ledger.release(held.request)
      api.cancel(`linger.${held.request}`)
    }
  }
  for (const held of context.ledger.on(node)) {
    if (held.state !== 'lingering' || counted.has(modelKey(held.model))) continue
    const lingering = context.lingering.get(held.request)
    if (lingering === undefined || !lingering.untilReport || lingering.since >= startedAt) continue
    context.lingering.delete(held.request)
    context.ledger.release(held.request)
    api.cancel(`linger.${held.request}`)
  }
}
