import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../src/sim/seeded-random'
import { chatText, fastModel, type FakeSpec, type Json, until } from '../support/fakes'
import type { Bench, Setup } from '../support/router'
import { quietly } from './clients'

const SEED = Number(process.env.RACES_SEED ?? 20_261_130)
const names = ['m1', 'm2', 'm3'] as const
const TOKENS = 12

const models = (loadMs = 15) => names.map((name) => fastModel(name, { loadMs, sizeGb: 5, decodePerSecond: 1_500 }))

/** Status and text of one streamed answer. */
const read = async (reply: Promise<Response>): Promise<{ status: number; text: string; body: string }> => {
  const answer = await reply
  const body = await answer.text()
  return { status: answer.status, text: chatText(body), body }
}

const isWhole = ({ status, text, body }: { status: number; text: string; body: string }): boolean =>
  status === 200 && text.split(' ').length === TOKENS && body.includes('data: [DONE]')

test.each([
  ['unknown memory and a hidden cap', { kind: 'ollama' }, {}],
  ['known memory and a hidden cap', { kind: 'ollama' }, { memoryGb: 40 }],
  ['a cap that it tells', { kind: 'llamacpp-router', slots: 2 }, {}],
] as [string, Pick<FakeSpec, 'kind' | 'slots'>, object][])(
  'BL-C01 an engine that keeps one model and pushes out a busy one (%s): the second waits, the first is whole',
  (_name, kind, described) =>
    quietly(
      [{ ...kind, models: models(), maxResident: 1, answerTokens: TOKENS * 20 }],
      { describe: () => described, health: { pollEveryMs: 50 } },
      async ({ fakes, chat, idle, router }) => {
        const [fake] = fakes
        fake?.faults.add({ type: 'evict_busy' })
        const first = read(chat({ model: 'm1' }))
        await until(() => fake?.running('m1') === 1)
        const second = read(chat({ model: 'm2' }))
        await until(() => router.fleet.overview().waiting === 1)

        expect((await first).text.split(' ')).toHaveLength(TOKENS * 20)
        expect((await first).body).toContain('data: [DONE]')
        expect((await second).text.split(' ')).toHaveLength(TOKENS * 20)
        expect(fake?.interrupted()).toBe(0)
        await idle()
      },
    ),
)

/** What ran in which order says how often the model had to change. */
const changesIn = ({ of }: Bench): number => {
  const started = of('request.phase').filter(({ phase }) => phase === 'prefill')
  return started.filter(
    ({ node, model }, at) => started.slice(0, at).findLast((one) => one.node === node)?.model !== model,
  ).length
}

const loadsOf = ({ fakes }: Bench): number => fakes.reduce((sum, { loads }) => sum + loads.length, 0)

test(
  'BL-C02 three clients in tight loops on a server that keeps one model: nothing breaks off, nobody starves',
  () =>
    quietly(
      [{ kind: 'llamacpp-router', models: models(), maxResident: 1, answerTokens: TOKENS }],
      { health: { pollEveryMs: 50 } },
      async (bench) => {
        const { fakes, chat, idle } = bench
        fakes[0]?.faults.add({ type: 'evict_busy' })
        const client = async (model: string): Promise<number> => {
          let whole = 0
          for (let at = 0; at < 4; at++) if (isWhole(await read(chat({ model, prompt: `${model} ${at}` })))) whole += 1
          return whole
        }

        expect(await Promise.all(names.map(client))).toEqual([4, 4, 4])
        expect(fakes[0]?.interrupted()).toBe(0)
        expect(loadsOf(bench)).toBeLessThanOrEqual(changesIn(bench))
        await idle()
      },
    ),
  20_000,
)

describe(`mixed requests for three models on engines that push out what answers (seed ${SEED})`, () => {
  const engines: [string, FakeSpec[], ReturnType<NonNullable<Setup['describe']>>, number?][] = [
    ['known memory', [{ kind: 'ollama', models: models(), memoryGb: 11 }], { memoryGb: 11 }],
    ['unknown memory and cap', [{ kind: 'ollama', models: models(), memoryGb: 11 }], {}, 1_000],
    [
      'known memory, a hidden cap, slots beside each other',
      [{ kind: 'ollama', models: models(), memoryGb: 40, maxResident: 2, slots: 3 }],
      { memoryGb: 40, maxConcurrency: 3 },
    ],
    ['a cap that it tells', [{ kind: 'llamacpp-router', models: models(), maxResident: 2 }], {}],
    [
      'two unlike nodes',
      [
        { kind: 'ollama', models: models(), memoryGb: 6 },
        { kind: 'llamacpp-router', models: models(), maxResident: 1 },
      ],
      {},
    ],
  ]

  test.each(engines)(
    '%s: no answer is interrupted, no livelock, no load more than needed',
    (_name, specs, described, requests = 300) =>
      quietly(
        specs.map((spec) => ({ ...spec, answerTokens: TOKENS })),
        { health: { pollEveryMs: 60 }, policy: { holdTimeoutMs: 60_000 }, describe: () => described },
        async (bench) => {
          const { fakes, chat, idle, of } = bench
          for (const fake of fakes) fake.faults.add({ type: 'evict_busy' })
          const { next } = seededRandom(SEED)
          const draws = Array.from({ length: requests }, (_, at) => ({
            at,
            model: names[Math.floor(next() * 3)] ?? 'm1',
          }))
          const all: Awaited<ReturnType<typeof read>>[] = []
          // Clients that ask one thing after the other; more connections than these would starve the router's own.
          const client = async (): Promise<void> => {
            for (let one = draws.pop(); one !== undefined; one = draws.pop())
              all.push(await read(chat({ model: one.model, prompt: `request ${one.at}` })))
          }
          await Promise.all(Array.from({ length: 60 }, client))

          expect(all).toHaveLength(requests)
          expect(all.filter((one) => !isWhole(one))).toEqual([])
          expect(fakes.map((fake) => fake.interrupted())).toEqual(fakes.map(() => 0))
          expect(of('attempt.failed')).toEqual([])
          expect(loadsOf(bench)).toBeLessThanOrEqual(changesIn(bench))
          await idle()
        },
      ),
    30_000,
  )
})

test('many wait for one load, which goes on when the one who asked for it leaves', () =>
  quietly(
    [{ kind: 'ollama', models: [fastModel('m', { loadMs: 400 })], slots: 30, answerTokens: TOKENS }],
    { describe: () => ({ maxConcurrency: 30 }) },
    async ({ fakes, chat, router, of, idle }) => {
      const leave = new AbortController()
      const first = chat({ signal: leave.signal }).catch(() => 'left')
      await until(() => fakes[0]?.loads.length === 1)
      const rest = Array.from({ length: 20 }, () => read(chat()))
      await until(() => router.fleet.waiters().length === 21)
      leave.abort()

      expect(await first).toBe('left')
      expect((await Promise.all(rest)).filter(isWhole)).toHaveLength(20)
      expect(fakes[0]?.loads).toHaveLength(1)
      expect(of('load.started')).toHaveLength(1)
      await idle()
    },
  ))

test('BL-C08 a load that fails once hurts its own request only, and its error never becomes an answer', () =>
  quietly(
    [{ kind: 'ollama', models: models(), answerTokens: TOKENS }],
    { health: { pollEveryMs: 50 } },
    async ({ fakes, chat, ollama, idle, of }) => {
      const message = 'llama runner process has terminated: exit status 2'
      fakes[0]?.faults.add({ type: 'fail_load', times: 1, message, match: { model: 'm1' } })

      const failing = chat({ model: 'm1', stream: false })
      await until(() => fakes[0]?.loads.length === 1)
      const [failed, other, again] = await Promise.all([
        failing.then(async (reply) => ({ status: reply.status, json: (await reply.json()) as Json })),
        read(chat({ model: 'm2' })),
        read(chat({ model: 'm1' })),
      ])

      expect(failed.status).toBe(502)
      expect(failed.json).toMatchObject({ error: { type: 'server_error' } })
      expect(failed.json.error.message).toContain(message)
      expect(failed.json.choices).toBeUndefined()
      expect([isWhole(other), isWhole(again)]).toEqual([true, true])
      expect(`${other.body}${again.body}`).not.toContain('terminated')
      expect(of('load.failed')).toHaveLength(1)

      // The same in Ollama's shape.
      fakes[0]?.faults.add({ type: 'fail_load', times: 1, message, match: { model: 'm3' } })
      const inOllama = await ollama({ model: 'm3', stream: false })
      expect(inOllama.status).toBe(502)
      const body = (await inOllama.json()) as Json
      expect(body.error).toContain(message)
      expect(body.message).toBeUndefined()
      await idle()
    },
  ))
