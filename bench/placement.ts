/**
 * How long a decision takes, from `request.place` until the reservation stands and the record is written, over the real
 * actors and their snapshots. A program of its own, so that it has a core and a heap to itself: prints JSON.
 */
import { startFleet } from '../actors'
import { address } from '../actors/protocol'
import { createSamples } from '../src/learning/service-times'
import { createDecisions } from '../src/observe/decisions'
import { createJournal } from '../src/observe/journal'
import type { NodeDescription, NodeReport } from '../src/domain/node'
import type { NodeGateway } from '../src/ports/node-gateway'
import { systemClock, systemRandom } from '../src/system'
import { testConfig, testJob, testNode } from '../test/support/host'
import { quantile } from './statistics'

const MODEL = 'm'

const reportOf = (model: string): NodeReport => ({
  models: [{ name: model }],
  resident: [{ name: model, state: 'ready', slots: 4 }],
  canLoad: false,
  canUnload: false,
})

export interface Placed {
  readonly nodes: number
  readonly holding: number
  /** In microseconds. */
  readonly p50: number
  readonly p99: number
}

const measure = async (nodes: number, holding: number, decisionsToMake: number): Promise<Placed> => {
  const holds = new Set(Array.from({ length: holding }, (_, index) => `n${index}`))
  const gateway = {
    report: (node: NodeDescription) => Promise.resolve(reportOf(holds.has(node.name) ? MODEL : 'another')),
    load: () => Promise.resolve(),
    unload: () => Promise.resolve(),
    cut: () => undefined,
    forward: () => {
      throw new Error('nothing is sent: only decisions are measured')
    },
  } satisfies NodeGateway
  const decisions = createDecisions({ version: '0' })
  let placedAt = 0
  let chosen = ''
  const probe = {
    name: 'probe',
    hear: (fact: { type: string; decision?: { node?: string } }) => {
      if (fact.type !== 'request.placed') return
      placedAt = performance.now()
      chosen = fact.decision?.node ?? ''
    },
  }
  const fleet = startFleet(
    testConfig({
      nodes: Array.from({ length: nodes }, (_, index) => testNode(`n${index}`)) as never,
      health: { pollEveryMs: 3_600_000 },
    }),
    {
      gateway,
      clock: systemClock,
      journal: createJournal([decisions, probe]),
      samples: createSamples(),
      random: systemRandom.next,
      precise: () => performance.now(),
    },
    { instance: 'bench', version: '0' },
  )
  await Bun.sleep(50)
  while (!fleet.nodes().every(({ health }) => health === 'online')) await Bun.sleep(5)

  const dispatcher = fleet.root.system.get(address.dispatcher)
  const took: number[] = []
  for (let i = 0; i < decisionsToMake * 2; i++) {
    const job = testJob({ id: systemRandom.id('req'), needs: [], arrivedAt: systemClock.now() })
    const startedAt = performance.now()
    dispatcher.send({ type: 'request.place', job, attempt: 1, cause: 'arrival', excluded: [] })
    // The first half makes the code warm.
    if (i >= decisionsToMake) took.push((placedAt - startedAt) * 1000)
    fleet.root.system.get(address.queue(chosen, MODEL)).send({ type: 'slot.released', request: job.id, attempt: 1 })
    if (i % 16 === 0) await Bun.sleep(0)
  }
  await fleet.stop(0)
  return { nodes, holding, p50: quantile(took, 0.5), p99: quantile(took, 0.99) }
}

if (import.meta.main) {
  const decisionsToMake = Number(process.argv[2] ?? 5_000)
  const placed: Placed[] = []
  for (const [nodes, holding] of [
    [4, 4],
    [20, 20],
    [200, 200],
    [2_000, 200],
    [2_000, 4],
  ] as const)
    placed.push(await measure(nodes, holding, decisionsToMake))
  console.log(JSON.stringify(placed))
  process.exit(0)
}
