import { type Job, modelKey } from '../src/domain/job'
import type { Admission, Breaker, Health, ResidentModel } from '../src/domain/node'
import type { Candidate, OtherResident } from '../src/domain/placement'
import { slotsOf } from '../src/placement/concurrency'
import type { Ledger } from '../src/placement/ledger'
import type { Member, Roster } from './roster'

/** The three axes of a node actor, as its snapshot has them. */
export interface NodeAxes {
  readonly health: Health
  readonly admission: Admission
  readonly breaker: Breaker
}

/** What the runtime actor observed. */
export const residentOn = ({ runtime }: Member): readonly ResidentModel[] =>
  (runtime.getSnapshot() as { context: { resident: readonly ResidentModel[] } }).context.resident

export const axesOf = ({ node }: Member): NodeAxes => (node.getSnapshot() as { value: NodeAxes }).value

const OFFLINE: NodeAxes = { health: 'offline', admission: 'open', breaker: 'closed' }

/** A node whose actor is gone for good is offline. */
const axesOrOffline = (member: Member): NodeAxes => {
  const snapshot = member.node.getSnapshot() as { status: string; value: NodeAxes }
  return snapshot.status === 'active' ? snapshot.value : OFFLINE
}

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

const candidateOf = (
  member: Member,
  key: string,
  choice: number,
  ledger: Ledger,
  roster: Roster,
): Candidate | undefined => {
  const stored = member.inventory?.get(key)
  if (stored === undefined) return undefined
  const { description, report } = member
  const { name } = description
  const axes = axesOrOffline(member)
  const resident = residentOn(member)
  const here = resident.find((model) => modelKey(model.name) === key || modelKey(model.name) === modelKey(stored.name))
  const availableGb = availableGbOn(member, resident, ledger)
  const account = ledger.account(name, stored.name)
  const { slots, basis } = slotsOf({
    kind: description.kind,
    ...(description.maxConcurrency === undefined ? {} : { configured: description.maxConcurrency }),
    ...(here?.slots === undefined ? {} : { reported: here.slots }),
    ...(availableGb === undefined ? {} : { headroomGb: availableGb }),
  })
  const nodeInFlight = ledger.nodeInFlight(name)
  const cap = axes.breaker === 'half_open' ? 1 : (description.maxConcurrency ?? Number.POSITIVE_INFINITY)
  const free = Math.max(
    0,
    Math.min(slots - account.reserved - account.granted - account.bound - account.foreign, cap - nodeInFlight),
  )
  const others: OtherResident[] = []
  for (const model of resident) {
    if (model === here) continue
    const busy = model.state === 'loading' || ledger.account(name, model.name).reserved > 0 || (model.running ?? 0) > 0
    const memoryGb = model.memoryGb ?? member.inventory?.get(modelKey(model.name))?.sizeGb
    others.push({ name: model.name, busy, ...(memoryGb === undefined ? {} : { memoryGb }) })
  }
  const costGb = here?.memoryGb ?? roster.measuredGb(modelKey(stored.name)) ?? stored.sizeGb
  const loading = ledger.loading(name)?.model
  return {
    node: description,
    model: stored.name,
    choice,
    stored,
    ...(here === undefined ? {} : { resident: here }),
    ...axes,
    ...(report?.pressure === undefined ? {} : { pressure: report.pressure }),
    canLoad: report?.canLoad ?? false,
    inFlight: account.reserved,
    bound: account.bound,
    foreign: account.foreign,
    slots,
    slotsBasis: basis,
    free,
    nodeInFlight,
    ...(loading === undefined ? {} : { loading }),
    others,
    ...(availableGb === undefined ? {} : { availableGb }),
    ...(costGb === undefined ? {} : { costGb }),
    ...(report?.maxResident === undefined ? {} : { maxResident: report.maxResident }),
    lastChosen: ledger.lastChosen(name),
  }
}

/** Live snapshots as plain candidates, for every node that holds a model of the job's chain and for no other. */
export const candidatesFor = (job: Job, roster: Roster, ledger: Ledger): readonly Candidate[] => {
  const candidates: Candidate[] = []
  for (const [choice, name] of job.models.entries()) {
    const key = modelKey(name)
    for (const node of roster.holding(key)) {
      const member = roster.get(node)
      const candidate = member === undefined ? undefined : candidateOf(member, key, choice, ledger, roster)
      if (candidate !== undefined) candidates.push(candidate)
    }
  }
  return candidates
}
