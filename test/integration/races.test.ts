import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../src/sim/seeded-random'
import type { FakeNode } from '../../src/sim/fake/options'
import { type AskOptions, askChat, fastModel, until, withFakes } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'

const SEED = Number(process.env.RACES_SEED ?? 20_261_130)
/** Decode time of one answer, in ms: long beside the arrival of a wave. */
const ANSWER_MS = 25

const slow = () => ({
  kind: 'llamacpp' as const,
  slots: 1,
  answerTokens: 6,
  models: [fastModel('m', { decodePerSecond: 6_000 / ANSWER_MS })],
})

const asked = (fakes: readonly FakeNode[]): number[] =>
  fakes.map((fake) => fake.log.filter(({ method }) => method === 'POST').length)

/** Sends a wave and tells how many of it each node got, most first. */
const wave = async ({ fakes, chat }: Bench, headers: readonly Record<string, string>[]): Promise<number[]> => {
  const before = asked(fakes)
  const replies = await Promise.all(headers.map((own) => chat({ stream: false, headers: own })))
  for (const reply of replies) {
    expect(reply.status).toBe(200)
    await reply.json()
  }
  return asked(fakes)
    .map((count, at) => count - (before[at] ?? 0))
    .sort((a, b) => b - a)
}

describe('BL-W03 waves of four at once on four idle nodes are spread 1-1-1-1', () => {
  test.each([
    ['from one client address with one prompt', () => ({})],
    ['with a session each', (at: number, repeat: number) => ({ 'x-fleet-session': `s${repeat}.${at}` })],
    ['with one session for all', () => ({ 'x-fleet-session': 'the same' })],
  ] as [string, (at: number, repeat: number) => Record<string, string>][])(
    '%s',
    (_name, headersOf) =>
      withRouter([slow(), slow(), slow(), slow()], {}, async (bench) => {
        for (let repeat = 0; repeat < 50; repeat++) {
          const headers = [0, 1, 2, 3].map((at) => headersOf(at, repeat))
          expect({ repeat, seen: await wave(bench, headers) }).toEqual({ repeat, seen: [1, 1, 1, 1] })
        }
        expect(bench.fakes.map((fake) => fake.peak())).toEqual([1, 1, 1, 1])
        await bench.idle()
      }),
    20_000,
  )
})

test.each([
  [4, 20],
  [16, 10],
])(
  `BL-R01 %i requests at once over HTTP on as many idle nodes take one each, %i times in random order (seed ${SEED})`,
  (count, repeats) =>
    withRouter(Array.from({ length: count }, slow), {}, async (bench) => {
      const { next } = seededRandom(SEED + count)
      for (let repeat = 0; repeat < repeats; repeat++) {
        const headers = Array.from({ length: count }, (_, at) => ({ 'x-fleet-session': `s${at}` }))
        headers.sort(() => next() - 0.5)
        expect({ repeat, seen: await wave(bench, headers) }).toEqual({ repeat, seen: Array(count).fill(1) })
      }
      await bench.idle()
    }),
  20_000,
)

const firstByte = async (reply: Promise<Response>, started: number) => {
  const reader = (await reply).body?.getReader()
  await reader?.read()
  return { at: performance.now() - started, reader }
}

const longAnswers = (slots: number) => ({
  kind: 'llamacpp' as const,
  slots,
  answerTokens: 200,
  models: [fastModel('m', { decodePerSecond: 20 })],
})

test('BL-W02 a node that takes 300 gets 200 streams at once: all first bytes within a second', () =>
  withRouter([longAnswers(300)], { describe: () => ({ maxConcurrency: 300 }) }, async ({ chat, fakes, idle }) => {
    // The first request pays for what has to be compiled once.
    await (await firstByte(chat(), 0)).reader?.cancel()

    const started = performance.now()
    const streams = await Promise.all(Array.from({ length: 200 }, () => firstByte(chat(), started)))

    expect(Math.max(...streams.map(({ at }) => at))).toBeLessThan(1_000)
    expect(fakes[0]?.peak()).toBe(200)
    for (const { reader } of streams) await reader?.cancel()
    await idle()
  }))

test('BL-W02 what is above the limit of a node waits here, with a reason and a place', () =>
  withRouter(
    [longAnswers(300)],
    { describe: () => ({ maxConcurrency: 10 }) },
    async ({ chat, fakes, router, idle }) => {
      const leave = new AbortController()
      const all = Array.from({ length: 12 }, () => chat({ signal: leave.signal }).catch(() => undefined))
      await until(() => router.fleet.waiters().length === 2 && fakes[0]?.running() === 10)

      expect(router.fleet.waiters()).toMatchObject([
        { kind: 'waiting', reason: 'busy', node: 'a', position: 1 },
        { kind: 'waiting', reason: 'busy', node: 'a', position: 2 },
      ])
      leave.abort()
      await Promise.all(all)
      await idle()
    },
  ))

describe('an engine that collapses above one job at a time', () => {
  const engine = {
    kind: 'llamacpp' as const,
    slots: 4,
    collapseAbove: 1,
    answerTokens: 50,
    models: [fastModel('m', { decodePerSecond: 200 })],
  }

  /** So many that the middle nine tenths leave one out at each end: this machine may be busy otherwise. */
  const REQUESTS = 20

  /** Tokens/s from the first token to the last of so many at once: slowest and fastest of the middle nine tenths. */
  const ratesOf = async (count: number, ask: (options: AskOptions) => Promise<Response>): Promise<[number, number]> => {
    const one = async (_: unknown, at: number): Promise<number> => {
      const reader = (await ask({ prompt: `prompt ${at}` })).body?.getReader()
      let first = 0
      let last = 0
      let events = 0
      for (let piece = await reader?.read(); piece !== undefined && !piece.done; piece = await reader?.read()) {
        last = performance.now()
        first ||= last
        events += new TextDecoder().decode(piece.value).split('"content"').length - 1
      }
      return ((events - 1) * 1_000) / (last - first)
    }
    const rates = (await Promise.all(Array.from({ length: count }, one))).sort((a, b) => a - b)
    return [rates[Math.floor(rates.length * 0.05)] ?? 0, rates[Math.ceil(rates.length * 0.95) - 1] ?? 0]
  }

  test('answers evenly through the router: p95 / p5 of tokens/s is at most 1.1', async () => {
    const direct = await withFakes([engine], (fake) =>
      ratesOf(REQUESTS, (options) => askChat(fake as FakeNode, options)),
    )
    const through = await withRouter([engine], { describe: () => ({ maxConcurrency: 1 }) }, ({ chat }) =>
      ratesOf(REQUESTS, (options) => chat(options)),
    )

    const text = ([p5, p95]: readonly number[]) =>
      `${((p95 ?? 0) / (p5 ?? 1)).toFixed(2)} (${p5?.toFixed(0)} to ${p95?.toFixed(0)} tokens/s)`
    console.log(`p95 / p5 of tokens/s: direct ${text(direct)}, through the router ${text(through)}`)
    expect(through[1] / through[0]).toBeLessThanOrEqual(1.1)
    expect(direct[1] / direct[0]).toBeGreaterThan(1.1)
  }, 15_000)
})
