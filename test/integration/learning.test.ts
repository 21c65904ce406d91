import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LearnedPair } from '../../src/learning/learned'
import type { QueueView } from '../../src/ports/fleet'
import type { LearnedNode } from '../../src/ports/samples'
import { openStore } from '../../src/store/sqlite'
import { systemClock } from '../../src/system'
import { fastModel, type Json } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'

/** About 5 ms to the first token, 100 ms for the rest. */
const model = () => fastModel('m', { decodePerSecond: 300 })
const answerTokens = 30

const drain = async (reply: Promise<Response>): Promise<void> => {
  const answer = await reply
  expect(answer.status).toBe(200)
  await answer.text()
}

const burst = (bench: Bench, count: number): Promise<unknown> =>
  Promise.all(
    Array.from({ length: count }, () => drain(bench.chat({ prompt: 'one two three four five six seven eight nine' }))),
  )

const queueOf = async (bench: Bench, node = 'a'): Promise<QueueView | undefined> => {
  const { queues } = (await bench.json(`/api/v1/nodes/${node}`)) as { queues: QueueView[] }
  return queues[0]
}

/** Runs with a folder for state that a router before this one left. */
const withState = async (
  pairs: readonly LearnedPair[],
  run: (state: { backend: 'sqlite'; path: string }) => Promise<void>,
) => {
  const path = mkdtempSync(join(tmpdir(), 'fleet-learned-'))
  const store = openStore({ path: join(path, 'fleet.db'), keepTracesMs: 1e9, clock: systemClock })
  store.learned.save({ pairs })
  store.close()
  try {
    await run({ backend: 'sqlite', path })
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

test('BL-Q06 an engine that runs 2 and is thought to run 8: learned within 20 requests, the rest waits here', () =>
  withState([{ node: 'a', model: 'm', services: 0, loads: 0, parallelism: { slots: 8, tryAfter: 20 } }], (state) =>
    withRouter(
      [{ kind: 'ollama', slots: 2, answerTokens, models: [model()], resident: ['m'] }],
      { state },
      async (bench) => {
        expect(await queueOf(bench)).toMatchObject({ slots: 8, slotsBasis: 'learned' })
        await burst(bench, 16)
        expect(await queueOf(bench)).toMatchObject({ slots: 2, slotsBasis: 'learned', parallelism: { together: 2 } })

        let isOver = false
        const second = burst(bench, 8).then(() => {
          isOver = true
        })
        let most = 0
        let waited = 0
        while (!isOver) {
          const { inFlight, waiting } = bench.router.fleet.overview()
          most = Math.max(most, inFlight)
          waited = Math.max(waited, waiting)
          await Bun.sleep(2)
        }
        await second
        expect({ most, waited }).toEqual({ most: 2, waited: 6 })
        await bench.idle()
      },
    ),
  ))

test('an Ollama that tells nothing and runs 3: found out one by one, shown with counts, and in metrics', () =>
  withRouter([{ kind: 'ollama', slots: 3, answerTokens, models: [model()], resident: ['m'] }], {}, async (bench) => {
    expect(await queueOf(bench)).toMatchObject({ slots: 1, slotsBasis: 'default' })
    for (let i = 0; i < 6; i++) await burst(bench, 10)

    const node = (await bench.json('/api/v1/nodes/a')) as Json
    expect(node.queues[0]).toMatchObject({ slots: 3, slotsBasis: 'learned' })
    expect(node.learned.samples).toBe(60)
    const [learned] = node.learned.models
    expect(learned).toMatchObject({ service: { samples: 60 }, prefill: {}, parallelism: { slots: 3 } })
    expect(learned.decode.map(({ concurrency }: { concurrency: number }) => concurrency)).toContain(3)
    const rates = learned.decode.map(({ perSecond }: { perSecond: number }) => perSecond)
    for (const rate of rates) expect(rate).toBeWithin(60, 400)
    const metrics = await bench.metrics()
    expect(metrics).toMatch(/fleet_slots\{[^}]*node="a"[^}]*\} 3/)
    expect(metrics).toMatch(/fleet_time_per_output_token_seconds_count\{[^}]*node="a"[^}]*\} 60/)
  }))

test('what was learned is there right after a restart', () =>
  withState([], async (state) => {
    const engine = { kind: 'ollama' as const, slots: 2, answerTokens, models: [model()], resident: ['m'] }
    const before = await withRouter([engine], { state }, async (bench) => {
      await burst(bench, 10)
      await burst(bench, 10)
      return bench.router.fleet.learned('a')
    })
    const after = await withRouter([engine], { state }, async (bench) => {
      expect(await queueOf(bench)).toMatchObject({ slots: 2, slotsBasis: 'learned' })
      return bench.router.fleet.learned('a')
    })
    const lasting = ({ models = [], ...means }: Partial<LearnedNode> = {}) => ({
      ...means,
      models: models.map(({ parallelism, ...rest }) => rest),
    })

    expect(lasting(after)).toEqual(lasting(before))
    expect(after?.models[0]?.service).toMatchObject({ samples: 20, p75Ms: expect.any(Number) })
  }))

test('prompts are estimated by the measured bytes per token of their model', () =>
  withRouter([{ kind: 'llamacpp', models: [model()] }], {}, async (bench) => {
    // Two bytes a letter: the fake counts four bytes a token, as the first estimate does; the template comes on top.
    const ask = () => drain(bench.chat({ prompt: 'ä '.repeat(400) }))
    await ask()
    await ask()
    const [first, second] = bench.of('request.arrived').map(({ job }) => job.promptTokens)
    const counted = bench.of('request.settled')[0]?.outcome.tokensIn ?? 0

    expect(first?.basis).toBe('estimated')
    expect(second?.basis).toBe('estimated')
    expect(Math.abs((second?.value ?? 0) - counted)).toBeLessThanOrEqual(Math.abs((first?.value ?? 0) - counted))
    expect(second?.value).toBeWithin(counted - 2, counted + 3)
  }))
