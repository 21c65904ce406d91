import { modelKey, sameModel } from '../../src/domain/job'
import type { NodeKind } from '../../src/domain/node'
import type { Reservation } from '../../src/placement/ledger'
import { address, type DispatcherEvent } from '../protocol'
import type { Turn } from './context'
import { noteLoaded } from './turns'

/** An engine that was writing notices a closed connection at its next write: so long, in ms, its slot stays taken. */
const LINGER_DECODE_MS = 100
/** One that was reading a prompt may go on until the first token; then only its next report, or this, frees the slot. */
const LINGER_PREFILL_MS = 20_000
/** The same for engines that notice at once. */
const LINGER_PREFILL_PROMPT_MS = 250
/** Engines that read a prompt to its end before they notice. */
const SLOW_TO_NOTICE: ReadonlySet<NodeKind> = new Set(['ollama', 'lmstudio'])
/** Answers polls all the same while it does so, so that no report proves the slot free. */
const SILENT: ReadonlySet<NodeKind> = new Set(['lmstudio'])

type Freed = Extract<DispatcherEvent, { type: 'slot.freed' }>
type Reported = Extract<DispatcherEvent, { type: 'node.reported' }>

/** Frees what the request holds. The load that it stood for, if it did, ends with the report that is asked for now. */
export const free = ({ context, api }: Turn, request: string): Reservation | undefined => {
  const { ledger, now } = context
  const held = ledger.release(request)
  const load = held === undefined ? undefined : ledger.loading(held.node)
  if (load?.request === request) {
    ledger.beginLoad({ ...load, overAt: now() })
    api.send(address.poller(load.node), { type: 'node.poll' })
  }
  return held
}

/** A running request has ended. One whose client left keeps its slot until the engine has surely stopped. */
export const releaseSlot = (turn: Turn, { request, attempt, linger }: Freed): void => {
  const { context, api } = turn
  const held = context.ledger.held(request)
  if (held === undefined || held.attempt !== attempt) return
  if (linger === undefined) {
    free(turn, request)
    return
  }
  const kind = context.roster.get(held.node)?.description.kind ?? 'openai'
  const slowToNotice = SLOW_TO_NOTICE.has(kind)
  const ms = linger === 'decode' ? LINGER_DECODE_MS : slowToNotice ? LINGER_PREFILL_MS : LINGER_PREFILL_PROMPT_MS
  const since = context.now()
  const kept = context.ledger.linger(request)
  if (kept === undefined) return
  context.lingering.set(kept.request, {
    since,
    until: since + ms,
    untilReport: linger === 'prefill' && !SILENT.has(kind),
  })
  api.later({ type: 'linger.ended' }, ms, `linger.${kept.request}`)
}

/** Frees the slots whose time has come. */
export const settleLingering = (turn: Turn): void => {
  const { context } = turn
  const now = context.now()
  for (const [request, { until }] of context.lingering) {
    if (until > now) continue
    context.lingering.delete(request)
    free(turn, request)
  }
}

/**
 * A poll has come back: foreign load is what the engine runs beyond ours, and slots that lingered are free once a poll
 * that began after the cancel shows the node answering and, where it counts, not running them.
 */
export const onReport = (turn: Turn, { node, report, startedAt }: Reported): void => {
  const { context, api } = turn
  endLoadByRequest(context, { node, report, startedAt })
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
      free(turn, held.request)
      api.cancel(`linger.${held.request}`)
    }
  }
  for (const held of context.ledger.on(node)) {
    if (held.state !== 'lingering' || counted.has(modelKey(held.model))) continue
    const lingering = context.lingering.get(held.request)
    if (lingering === undefined || !lingering.untilReport || lingering.since >= startedAt) continue
    context.lingering.delete(held.request)
    free(turn, held.request)
    api.cancel(`linger.${held.request}`)
  }
}

/** A request made the node load its model: over when a report shows the model, or is younger than the request's end. */
const endLoadByRequest = (context: Turn['context'], { node, report, startedAt }: Omit<Reported, 'type'>): void => {
  const { ledger, samples } = context
  const load = ledger.loading(node)
  if (load?.request === undefined) return
  const isThere =
    startedAt > load.startedAt &&
    report.resident.some(({ name, state }) => state === 'ready' && sameModel(name, load.model))
  const isOver = load.overAt !== undefined && startedAt >= load.overAt
  if (!isThere && !isOver) return
  ledger.endLoad(node)
  if (isThere) noteLoaded(context, node, startedAt - load.startedAt)
  // Afterwards the time would be that of the answer too.
  if (load.overAt === undefined) samples.addLoad(node, modelKey(load.model), startedAt - load.startedAt, load.costGb)
}
