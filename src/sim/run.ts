import { startFleet } from '../../actors'
import { loadConfig } from '../config/load'
import type { Config } from '../domain/config'
import { RouterError } from '../domain/errors'
import type { Fact } from '../domain/facts'
import { learnFrom } from '../learning/learn'
import { createSamples } from '../learning/service-times'
import { createJournal } from '../observe/journal'
import { policies, policyNamed } from '../placement/policies'
import { createInvariants } from './invariants'
import { seededRandom } from './seeded-random'
import { createSimGateway } from './sim-gateway'
import { createSimNode, type SimNode } from './sim-node'
import { createSummary, type SimulationSummary } from './summary'
import { VirtualClock } from './virtual-clock'
import { type Arrival, createWorkload, type Trouble } from './workload'

export interface SimulationInput {
  readonly seed: number
  readonly requests: number
  readonly nodes: number
  /** A placement policy by name; the configured default when absent. */
  readonly policy?: string
}

export interface Simulation extends SimulationSummary {
  /** What was broken, oldest first; empty in a good run. */
  readonly broken: readonly string[]
}

const STARTS_AT = 1_800_000_000_000
/** Whoever has not settled so long after the last trouble never will. */
const PATIENCE_MS = 3_600_000
/** Slots that linger after a cancel are free after this. */
const REST_MS = 30_000

/** The defaults, under the named policy. */
const configFor = (policy: string | undefined): Config => {
  const readSecret = (): string => {
    throw new RouterError('internal', 'A simulation has no secrets.')
  }
  const { config, problems } = loadConfig({ env: {}, flags: {}, readSecret })
  if (config === undefined) throw new RouterError('internal', problems.map(({ message }) => message).join('; '))
  if (policy === undefined) return config
  if (policyNamed(policy) === undefined) {
    const names = policies.map(({ name }) => name).join(', ')
    throw new RouterError('invalid_request', `there is no policy '${policy}'; there are ${names}`)
  }
  return { ...config, policy: { ...config.policy, use: policy } }
}

/**
 * The whole core on virtual time over simulated machines that crash, freeze and fail, with clients that leave. Repeats
 * exactly from its seed. Invariants are checked after every event.
 */
export const simulate = async ({ seed, requests, nodes, policy }: SimulationInput): Promise<Simulation> => {
  const clock = new VirtualClock(STARTS_AT)
  const load = createWorkload(seededRandom(seed), { requests, nodes, startsAt: STARTS_AT })
  const machines = new Map<string, SimNode>()
  const summary = createSummary()
  const samples = createSamples()

  const breach = (what: string): void => invariants.breach(what)
  const engines = seededRandom(seed + 1)
  for (const spec of load.nodes) machines.set(spec.name, createSimNode(spec, clock, engines, breach))
  const gateway = createSimGateway(machines, clock, breach)
  const hear = (fact: Fact): void => {
    invariants.hear(fact)
    summary.hear(fact)
  }
  const config = configFor(policy)
  const fleet = startFleet(
    { ...config, nodes: [...machines.values()].map(({ description }) => description) },
    {
      gateway,
      clock,
      journal: createJournal([learnFrom(samples), { name: 'simulation', hear }]),
      samples,
      random: seededRandom(seed + 2).next,
      precise: () => 0,
    },
    { instance: `simulation-${seed}`, version: '' },
  )
  const { desk, requests: live, queues } = fleet.shared
  const invariants = createInvariants(
    {
      check: () => desk.ledger.check(),
      holds: (request) => desk.ledger.held(request) !== undefined,
      waiting: () => desk.room.entries(),
      left: () => ({
        'reservations are': desk.ledger.total(),
        'waiters are': desk.room.size,
        'loading requests are': fleet.waiters().length,
        'request actors are': live.size,
        'queue entries are': [...queues.values()].reduce((sum, queue) => {
          const { waiting, running } = queue.getSnapshot().context
          return sum + waiting.length + running.size
        }, 0),
      }),
    },
    () => clock.now(),
  )

  let open = requests
  const submit = ({ job, leavesAfterMs, hangsUp }: Arrival): void => {
    const client = new AbortController()
    const over = (): void => {
      open -= 1
      invariants.answered(job.id)
    }
    fleet.submit(job, client.signal).then(over, over)
    if (leavesAfterMs === undefined) return
    clock.setTimeout(() => {
      if (hangsUp) gateway.hangUp(job.id)
      client.abort()
    }, leavesAfterMs)
  }
  const befall = ({ node: name, what, forMs }: Trouble): void => {
    const machine = machines.get(name)
    if (machine === undefined) return
    const [begin, end] = (
      {
        crash: [machine.crash, machine.revive],
        freeze: [() => machine.freeze(forMs), () => {}],
        pause: [() => fleet.setAdmission(name, 'paused'), () => fleet.setAdmission(name, 'open')],
        drain: [() => fleet.setAdmission(name, 'draining'), () => fleet.setAdmission(name, 'open')],
        remove: [() => fleet.removeNode(name), () => fleet.addNode(machine.description)],
      } as const
    )[what]
    begin()
    clock.setTimeout(end, forMs)
  }
  for (const arrival of load.arrivals) clock.setTimeout(() => submit(arrival), arrival.at)
  for (const trouble of load.troubles) clock.setTimeout(() => befall(trouble), trouble.at)

  const lastAt = Math.max(...load.arrivals.map(({ at }) => at), ...load.troubles.map(({ at, forMs }) => at + forMs))
  let restUntil = Number.POSITIVE_INFINITY
  while (clock.now() < Math.min(restUntil, STARTS_AT + lastAt + PATIENCE_MS) && (await clock.step())) {
    summary.step()
    invariants.check()
    if (open === 0 && live.size === 0 && restUntil === Number.POSITIVE_INFINITY) restUntil = clock.now() + REST_MS
  }
  invariants.checkIdle()
  return { ...summary.result(seed, requests, nodes, clock.now() - STARTS_AT), broken: invariants.broken }
}
