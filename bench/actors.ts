/**
 * `bun bench/actors.ts`: CPU of one request in the core, without HTTP and without a node's IO: from submit to settled,
 * through the supervisor, the request, the dispatcher and a queue. The decision itself (view, filters, policy) is
 * measured on the same snapshots and shown apart; what remains is the work of the actors.
 */
import { candidatesFor } from '../actors/slates'
import { DEFAULT_COST, DEFAULT_SCORE } from '../src/domain/score'
import { place } from '../src/placement/place'
import { residency } from '../src/placement/policies/residency'
import { instantFleet } from '../test/support/instant'
import { noSamples, testJob } from '../test/support/host'

const ROUNDS = 7
const PER_ROUND = 10_000
const AT_ONCE = 100
/** What the actors may cost per request, in us. */
const BUDGET_US = 10

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0

/** CPU of this process per item, in us. */
const cpuOf = async (items: number, run: () => Promise<void>): Promise<number> => {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / items
}

/** What the measurement itself costs: a job, an abort signal and a promise for each. */
const driver = async (): Promise<void> => {
  for (let i = 0; i < PER_ROUND; i += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, () => {
        const job = testJob({ arrivedAt: Date.now() })
        const { signal } = new AbortController()
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve(job), { once: true })
          queueMicrotask(() => resolve(job))
        })
      }),
    )
  }
}

const measure = async (nodes: number) => {
  const core = await instantFleet({ nodes })
  const requests = async (): Promise<void> => {
    for (let i = 0; i < PER_ROUND; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, () => core.submit()))
  }
  await requests()
  await driver()
  const { roster, desk } = core.fleet.shared
  const context = {
    now: Date.now(),
    serviceMs: () => undefined,
    loadMs: () => undefined,
    p75Ms: () => undefined,
    nodeMeans: () => undefined,
    sessionNode: () => undefined,
    random: Math.random,
    score: DEFAULT_SCORE,
    cost: DEFAULT_COST,
  }
  const job = testJob()
  const { parallelism } = noSamples()
  const decide = async (): Promise<void> => {
    for (let i = 0; i < PER_ROUND; i++) {
      const { decision } = place(
        candidatesFor(job, roster, desk.ledger, parallelism),
        job,
        residency,
        context,
        new Set(),
      )
      // As a request does: whatever was derived from the ledger is out of date for the next.
      desk.ledger.chosen(decision.node ?? '')
    }
  }
  await decide()
  const total: number[] = []
  const decision: number[] = []
  const overhead: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    total.push(await cpuOf(PER_ROUND, requests))
    decision.push(await cpuOf(PER_ROUND, decide))
    overhead.push(await cpuOf(PER_ROUND, driver))
  }
  await core.stop()
  const actors = median(total) - median(decision) - median(overhead)
  return { nodes, totalUs: median(total), decisionUs: median(decision), driverUs: median(overhead), actorsUs: actors }
}

const shown = (us: number): string => us.toFixed(1).padStart(8)

console.log('nodes    total  decision   driver   actors  (us of CPU per request, medians)')
for (const nodes of [1, 4, 16]) {
  const { totalUs, decisionUs, driverUs, actorsUs } = await measure(nodes)
  console.log(
    `${String(nodes).padStart(5)} ${shown(totalUs)}  ${shown(decisionUs)} ${shown(driverUs)} ${shown(actorsUs)}`,
  )
}
console.log(`budget of the actors: ${BUDGET_US} us`)
process.exit(0)
