import { modelKey } from '../src/domain/job'
import type { Admission, Breaker, Health, ResidentModel } from '../src/domain/node'
import type { Candidate, OtherResident } from '../src/domain/placement'
import type { Writable } from '../src/domain/writable'
import { type SlotFacts, slotsOf } from '../src/placement/concurrency'
import type { Ledger } from '../src/placement/ledger'
import type { ParallelismWatch } from '../src/ports/samples'
import type { Member, Roster } from './roster'

/** How many requests run at once where that was learned. */
export type LearnedSlots = Pick<ParallelismWatch, 'slots' | 'mark'>

/** The three axes of a node actor, as its snapshot has them. */
export interface NodeAxes {
  readonly health: Health
  readonly admission: Admission
  readonly breaker: Breaker
}

/** What the runtime actor observed. */
export const residentOn = ({ runtime }: Member): readonly ResidentModel[] =>
  (runtime.getSnapshot() as { context: { resident: readonly ResidentModel[] } }).context.resident

/** Without what a load that has been decided pushes out, although its runtime may not have heard of that yet. */
const stayingOn = (member: Member, ledger: Ledger): readonly ResidentModel[] => {
  const evicts = ledger.loading(member.description.name)?.evicts ?? []
  if (evicts.length === 0) return residentOn(member)
  const out = new Set(evicts.map(modelKey))
  return residentOn(member).filter(({ name }) => !out.has(modelKey(name)))
}

/** Our loads that ended on the node, by model key. */
const loadedAtOn = ({ runtime }: Member): ReadonlyMap<string, number> =>
  (runtime.getSnapshot() as { context: { loadedAt: ReadonlyMap<string, number> } }).context.loadedAt

/** Another model was loaded since the last report was asked for, which lists this one. */
const isUnverified = (member: Member, key: string): boolean => {
  const { lastReportAt = 0, pollMs = 0 } = member
  for (const [other, at] of loadedAtOn(member)) if (other !== key && at > lastReportAt - pollMs) return true
  return false
}

/** Our load of it ended after the last report was asked for: what the engine says of its slots is still to come. */
const isJustLoaded = (member: Member, key: string): boolean => {
  const { lastReportAt = 0, pollMs = 0 } = member
  return (loadedAtOn(member).get(key) ?? -1) >= lastReportAt - pollMs
}

const unloadedAtOn = ({ runtime }: Member, key: string): number | undefined =>
  (runtime.getSnapshot() as { context: { unloadedAt: ReadonlyMap<string, number> } }).context.unloadedAt.get(key)

/** The axes of a node; one whose actor broke is offline, and paused still if an operator wanted it so. */
export const axesOf = ({ node }: Member): NodeAxes => {
  const { status, value } = node.getSnapshot() as { status: string; value: NodeAxes }
  const { health, admission, breaker } = value
  return { health: status === 'error' ? 'offline' : health, admission, breaker }
}

/** Its polls take longer than the time between them, so its report is older than those of the others. */
export const isStale = ({ poller, pollMs }: Member): boolean => {
  const { value, context } = poller.getSnapshot() as { value: string; context: { health: { pollEveryMs: number } } }
  return value === 'late' || (pollMs !== undefined && pollMs > context.health.pollEveryMs)
}

const isRefusing = ({ node }: Member): boolean =>
  (node.getSnapshot() as { value: { refusals?: string } }).value.refusals === 'lately'

/** Memory for a further model in GB: total minus what is resident or being loaded; undefined when any part is unknown. */
export const availableGbOn = (
  member: Member,
  resident: readonly ResidentModel[],
  ledger: Ledger,
): number | undefined => {
  const { description, report, inventory } = member
  const load = ledger.loading(description.name)
  if (report?.freeGb !== undefined) return Math.max(0, report.freeGb - (load?.costGb ?? 0))
  const total = description.memoryGb ?? report?.memoryGb
  if (total === undefined) return undefined
  let used =
    load === undefined || resident.some(({ name }) => modelKey(name) === modelKey(load.model)) ? 0 : (load.costGb ?? 0)
  for (const { name, memoryGb } of resident) {
    const size = memoryGb ?? inventory?.get(modelKey(name))?.sizeGb
    if (size === undefined) return undefined
    used += size
  }
  return Math.max(0, total - used)
}

/** The resident copy under one of two names. */
const copyIn = (resident: readonly ResidentModel[], key: string, storedKey: string): ResidentModel | undefined => {
  for (const model of resident) {
    const own = modelKey(model.name)
    if (own === key || own === storedKey) return model
  }
  return undefined
}

export const candidateOf = (
  member: Member,
  key: string,
  choice: number,
  ledger: Ledger,
  roster: Roster,
  parallelism: LearnedSlots,
): Candidate | undefined => {
  const stored = member.inventory?.get(key)
  if (stored === undefined) return undefined
  const { description, report } = member
  const { name } = description
  const axes = axesOf(member)
  const resident = stayingOn(member, ledger)
  const here = copyIn(resident, key, modelKey(stored.name))
  const availableGb = availableGbOn(member, resident, ledger)
  const account = ledger.account(name, stored.name)
  const learned = parallelism.slots(name, stored.name)
  const justLoaded = isJustLoaded(member, modelKey(stored.name))
  const facts: Writable<SlotFacts> = { kind: description.kind }
  if (description.maxConcurrency !== undefined) facts.configured = description.maxConcurrency
  if (here?.slots !== undefined) facts.reported = here.slots
  if (learned !== undefined) facts.learned = learned
  if (availableGb !== undefined && !justLoaded) facts.headroomGb = availableGb
  const { slots, basis } = slotsOf(facts)
  const nodeInFlight = ledger.nodeInFlight(name) + ledger.nodeGranted(name)
  const cap = axes.breaker === 'half_open' ? 1 : (description.maxConcurrency ?? Number.POSITIVE_INFINITY)
  const free = Math.max(
    0,
    Math.min(slots - account.reserved - account.granted - account.bound - account.foreign, cap - nodeInFlight),
  )
  const others: OtherResident[] = []
  for (const model of resident) {
    if (model === here) continue
    const { reserved, granted } = ledger.account(name, model.name)
    const busy = model.state === 'loading' || reserved + granted > 0 || (model.running ?? 0) > 0
    const memoryGb = model.memoryGb ?? member.inventory?.get(modelKey(model.name))?.sizeGb
    others.push({ name: model.name, busy, ...(memoryGb === undefined ? {} : { memoryGb }) })
  }
  // What runs there without being listed: the engine brings it back into memory, or does not list what it loads.
  for (const busy of ledger.busyModels(name)) {
    if (busy !== modelKey(stored.name) && copyIn(resident, busy, busy) === undefined)
      others.push({ name: busy, busy: true })
  }
  const costGb = here?.memoryGb ?? roster.measuredGb(modelKey(stored.name)) ?? stored.sizeGb
  const loading = ledger.loading(name)?.model
  const unloadedAt = here === undefined ? unloadedAtOn(member, modelKey(stored.name)) : undefined
  const totalGb = description.memoryGb ?? report?.memoryGb
  const candidate: Writable<Candidate> = {
    node: description,
    model: stored.name,
    choice,
    stored,
    health: axes.health,
    admission: axes.admission,
    breaker: axes.breaker,
    canLoad: report?.canLoad ?? false,
    inFlight: account.reserved,
    bound: account.bound,
    foreign: account.foreign,
    slots,
    slotsBasis: basis,
    free,
    nodeInFlight,
    others,
    lastChosen: ledger.lastChosen(name),
  }
  if (here !== undefined) candidate.resident = here
  if (isStale(member)) candidate.isStale = true
  if (isRefusing(member)) candidate.isRefusing = true
  if (report?.pressure !== undefined) candidate.pressure = report.pressure
  if (report?.lanesDown !== undefined) candidate.lanesDown = report.lanesDown
  if (report?.loadsOnRequest !== undefined) candidate.loadsOnRequest = report.loadsOnRequest
  if (loading !== undefined) candidate.loading = loading
  if (availableGb !== undefined) candidate.availableGb = availableGb
  if (costGb !== undefined) candidate.costGb = costGb
  if (report?.maxResident !== undefined) candidate.maxResident = report.maxResident
  if (member.mostResident !== undefined) candidate.mostResident = member.mostResident
  if (here !== undefined && isUnverified(member, modelKey(here.name))) candidate.isUnverified = true
  if (justLoaded) candidate.isJustLoaded = true
  if (unloadedAt !== undefined) candidate.unloadedAt = unloadedAt
  if (totalGb !== undefined) candidate.totalGb = totalGb
  return candidate
}

/** One node's copy of a model, by the fleet's name for it. */
export const candidateAt = (
  node: string,
  model: string,
  roster: Roster,
  ledger: Ledger,
  parallelism: LearnedSlots,
): Candidate | undefined => {
  const member = roster.get(node)
  return member === undefined ? undefined : candidateOf(member, modelKey(model), 0, ledger, roster, parallelism)
}
