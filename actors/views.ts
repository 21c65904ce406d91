import { modelKey } from '../src/domain/job'
import type { NodeView, QueueView, Waiter } from '../src/ports/fleet'
import { slotsOf } from '../src/placement/concurrency'
import type { Ledger } from '../src/placement/ledger'
import type { Room } from '../src/placement/room'
import type { NodeContext } from './node/context'
import type { QueueContext } from './queue.machine'
import type { Member } from './roster'
import { availableGbOn, axesOf, residentOn } from './view'
import type { Shared } from './wiring'

const stateWord = (member: Member, quarantined: boolean): string => {
  if (quarantined) return 'quarantined'
  const { health, admission, breaker } = axesOf(member)
  if (health === 'offline') return 'offline'
  if (breaker === 'open') return 'circuit_open'
  if (admission !== 'open') return admission
  return health
}

/** Engines take a moment to unload what has run out; a model listed for longer than this after that is stuck, in ms. */
const STUCK_AFTER_MS = 10_000

const hintFor = (member: Member, ledger: Ledger): string | undefined => {
  const { description, lastReportAt = 0 } = member
  const busy = new Set(ledger.busyModels(description.name))
  const stuck = residentOn(member).find(
    ({ name, expiresAt = Number.POSITIVE_INFINITY }) =>
      expiresAt + STUCK_AFTER_MS < lastReportAt && !busy.has(modelKey(name)),
  )
  return stuck && `${stuck.name} is listed as in memory although its time has run out: restart the engine if it stays.`
}

const queueViewOf = (member: Member, model: string, { desk: { ledger }, samples }: Shared): QueueView => {
  const { description } = member
  const resident = residentOn(member)
  const account = ledger.account(description.name, model)
  const here = resident.find(({ name }) => modelKey(name) === modelKey(model))
  const headroomGb = availableGbOn(member, resident, ledger)
  const parallelism = samples.parallelism.of(description.name, model)
  const { slots, basis } = slotsOf({
    kind: description.kind,
    ...(description.maxConcurrency === undefined ? {} : { configured: description.maxConcurrency }),
    ...(here?.slots === undefined ? {} : { reported: here.slots }),
    ...(parallelism?.slots === undefined ? {} : { learned: parallelism.slots }),
    ...(headroomGb === undefined ? {} : { headroomGb }),
  })
  return {
    node: description.name,
    model,
    slots,
    slotsBasis: basis,
    inFlight: account.reserved - account.lingering,
    waiting: account.bound,
    lingering: account.lingering,
    ...(parallelism !== undefined && parallelism.overlapping > 0 ? { parallelism } : {}),
  }
}

const queuesOf = (member: Member, shared: Shared): readonly QueueView[] => {
  const models = new Map(residentOn(member).map(({ name }) => [modelKey(name), name]))
  for (const queue of shared.queues.values()) {
    const { node, model } = (queue.getSnapshot() as { context: QueueContext }).context
    if (node === member.description.name && !models.has(modelKey(model))) models.set(modelKey(model), model)
  }
  return [...models.values()].map((model) => queueViewOf(member, model, shared))
}

export const nodeViewOf = (member: Member, shared: Shared, quarantined: boolean): NodeView => {
  const { description, report, lastReportAt, pollMs } = member
  const { ledger } = shared.desk
  const axes = axesOf(member)
  const context = (member.node.getSnapshot() as { context: NodeContext }).context
  const resident = residentOn(member)
  const memoryGb = description.memoryGb ?? report?.memoryGb
  const freeGb = report?.freeGb ?? availableGbOn(member, resident, ledger)
  const loading = ledger.loading(description.name)
  const hint = hintFor(member, ledger)
  return {
    name: description.name,
    kind: description.kind,
    url: description.url,
    origin: description.origin,
    tags: description.tags,
    ...(report?.version === undefined ? {} : { version: report.version }),
    ...axes,
    ...(context.healthReason === undefined ? {} : { healthReason: context.healthReason }),
    ...(axes.breaker === 'closed' || context.breakerReason === undefined
      ? {}
      : { breakerReason: context.breakerReason }),
    ...(axes.breaker === 'closed' || context.breakerSince === undefined ? {} : { breakerSince: context.breakerSince }),
    ...(axes.breaker !== 'open' || context.breakerRetryAt === undefined
      ? {}
      : { breakerRetryAt: context.breakerRetryAt }),
    state: stateWord(member, quarantined),
    ...(hint === undefined ? {} : { hint }),
    ...(lastReportAt === undefined ? {} : { lastReportAt }),
    ...(pollMs === undefined ? {} : { pollMs }),
    ...(report?.pressure === undefined ? {} : { pressure: report.pressure }),
    ...(report?.lanesDown === undefined ? {} : { lanesDown: report.lanesDown }),
    ...(memoryGb === undefined ? {} : { memoryGb }),
    ...(freeGb === undefined ? {} : { freeGb }),
    ...(loading?.costGb === undefined ? {} : { claimedGb: loading.costGb }),
    ...(description.maxConcurrency === undefined ? {} : { maxConcurrency: description.maxConcurrency }),
    inFlight: ledger.nodeInFlight(description.name),
    ...(loading === undefined ? {} : { loading: loading.model }),
    models: report?.models ?? [],
    resident,
    queues: queuesOf(member, shared),
  }
}

/** Everybody who waits, with place and reason; the ones whose model is being loaded and the bound ones too. */
export const waitersOf = (
  room: Room,
  shared: Shared,
  loading: ReadonlyMap<string, { id: string; asked: string; arrivedAt: number }>,
  now: number,
): readonly Waiter[] => {
  const waiters: Waiter[] = []
  const places = new Map<string, number>()
  for (const { job, standing, reason, tentative } of room.entries()) {
    const key = modelKey(job.models[0] ?? job.asked)
    const position = (places.get(key) ?? 0) + 1
    places.set(key, position)
    waiters.push({
      request: job.id,
      model: job.asked,
      kind: standing,
      waitedMs: now - job.arrivedAt,
      position,
      reason,
      ...(tentative === undefined ? {} : { node: tentative }),
    })
  }
  for (const { id, asked, arrivedAt } of loading.values()) {
    const node = shared.desk.ledger.held(id)?.node
    waiters.push({
      request: id,
      model: asked,
      kind: 'loading',
      waitedMs: now - arrivedAt,
      position: 1,
      reason: 'cold_load',
      ...(node === undefined ? {} : { node }),
    })
  }
  for (const queue of shared.queues.values()) {
    const { node, model, waiting } = (queue.getSnapshot() as { context: QueueContext }).context
    for (const [at, { request, arrivedAt }] of waiting.entries()) {
      waiters.push({ request, model, kind: 'bound', node, waitedMs: now - arrivedAt, position: at + 1, reason: 'busy' })
    }
  }
  return waiters
}
