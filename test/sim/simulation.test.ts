import { describe, expect, test } from 'bun:test'
import { repeatedBy } from '../../src/cli/simulate'
import { simulate } from '../../src/sim/run'

const SEEDS = 50

/** Fails with the command that repeats the run. */
const run = async (input: { seed: number; requests: number; nodes: number; policy?: string }) => {
  const result = await simulate(input)
  if (result.broken.length > 0) throw new Error(`${repeatedBy(input)}\n${result.broken.join('\n')}`)
  return result
}

describe('whatever crashes, freezes, fails or leaves, every invariant holds after every event', () => {
  const total = { completed: 0, client_disconnected: 0, incomplete: 0, expired: 0, failures: 0, loads: 0, events: 0 }

  for (let seed = 1; seed <= SEEDS; seed++) {
    test(`seed ${seed}`, async () => {
      const { outcomes, failures, loads, events } = await run({ seed, requests: 120, nodes: 2 + (seed % 5) })
      for (const end of ['completed', 'client_disconnected', 'incomplete', 'expired'] as const)
        total[end] += outcomes[end] ?? 0
      total.failures += Object.values(failures).reduce((sum, count) => sum + count, 0)
      total.loads += loads.finished
      total.events += events
    })
  }

  test('and the runs had some of everything in them', () => {
    console.log(`${SEEDS} seeds: ${JSON.stringify(total)}`)
    for (const count of Object.values(total)) expect(count).toBeGreaterThan(SEEDS)
  })
})

test.each(['warmth', 'steady', 'round-robin', 'least-connections', 'power-of-two'])(
  'the invariants hold when requests are bound early, by %s',
  async (policy) => {
    for (let seed = 1; seed <= 4; seed++) {
      const { placements } = await run({ seed, requests: 100, nodes: 4, policy })
      expect(placements.bind).toBeGreaterThan(20)
    }
  },
)

test('the same seed gives the same facts in the same order; another one gives others', async () => {
  const input = { seed: 11, requests: 150, nodes: 4 }
  const first = await simulate(input)
  const again = await simulate(input)
  const other = await simulate({ ...input, seed: 12 })

  expect(again).toEqual(first)
  expect(other.hash).not.toBe(first.hash)
})
