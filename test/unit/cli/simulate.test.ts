import { expect, test } from 'bun:test'
import { type SimulationInput, type SimulationReport, simulate } from '../../../src/cli/simulate'
import { RouterError } from '../../../src/domain/errors'
import { args, terminal } from './terminal'

const report = (input: SimulationInput, broken: readonly string[] = []): SimulationReport => ({
  ...input,
  virtualMs: 120_500,
  events: 900,
  placements: { wait: 3, start: 10 },
  outcomes: { completed: 9, expired: 1 },
  waitMs: { p50: 40, p95: 2_500 },
  loads: { finished: 2, failed: 1 },
  failures: {},
  broken,
})

const runWith = async (options: Record<string, string | true>, broken: readonly string[] = []) => {
  const { io, printed, complained } = terminal({})
  const inputs: SimulationInput[] = []
  const code = await simulate(args([], options), io, async (input) => {
    inputs.push(input)
    return report(input, broken)
  })
  return { code, inputs, out: printed(), err: complained() }
}

test('a run is summed up and exits 0', async () => {
  const { code, inputs, out } = await runWith({ seed: '7', nodes: '3' })

  expect(inputs).toEqual([{ seed: 7, requests: 1_000, nodes: 3 }])
  expect(code).toBe(0)
  expect(out).toBe(`1000 requests on 3 simulated nodes in 120.5 s of virtual time (seed 7, 900 events)
  placements  start 10, wait 3
  ended       completed 9, expired 1
  wait        p50 0.0 s, p95 2.5 s
  loads       2 finished, 1 failed
  failures    none
`)
})

test('a broken invariant exits 7 and prints the command that repeats it', async () => {
  const { code, err } = await runWith({ requests: '50', policy: 'warmth' }, ['after 5 ms: r1 settled 2 times'])

  expect(code).toBe(7)
  expect(err).toBe(
    'broken: after 5 ms: r1 settled 2 times\nrepeat it with: fleet simulate --seed 1 --requests 50 --nodes 4 --policy warmth\n',
  )
})

test('numbers are checked, and so is the policy', async () => {
  for (const [option, value] of [
    ['seed', '-1'],
    ['requests', '0'],
    ['nodes', '1e3'],
    ['nodes', 'x'],
  ] as const) {
    const { code, err, inputs } = await runWith({ [option]: value })
    expect([code, inputs.length]).toEqual([2, 0])
    expect(err).toStartWith(`option '--${option}' needs a whole number from `)
  }
  const { io, complained } = terminal({})
  const code = await simulate(args([], { policy: 'nope' }), io, () =>
    Promise.reject(new RouterError('invalid_request', "there is no policy 'nope'")),
  )
  expect([code, complained()]).toEqual([2, "there is no policy 'nope'\n"])
})

test('--json prints the whole report', async () => {
  const { out } = await runWith({ json: true })
  expect(JSON.parse(out)).toMatchObject({ seed: 1, waitMs: { p95: 2_500 } })
})
