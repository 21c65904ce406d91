import { describe, expect, test } from 'bun:test'
import { fastModel, slowModel, until } from '../support/fakes'
import type { Bench } from '../support/router'
import {
  ask,
  asked,
  ollamaChat,
  openAiChat,
  pairs,
  quietly,
  rawClient,
  readSome,
  settledRecord,
  shapes,
} from './clients'

const SHAPES = shapes.map((shape) => [shape.name, shape] as const)

/** One that writes for minutes. */
const talker = (kind: 'llamacpp' | 'ollama' | 'openai', more: object = {}) => ({
  kind,
  resident: ['m'],
  answerTokens: 10_000,
  models: [slowModel()],
  ...more,
})

/** An Ollama that may still be reading a prompt keeps its slot until its next report (BL-D11). */
const quickPolls = { health: { pollEveryMs: 200 } }

const phaseOf = (bench: Bench): string | undefined => bench.of('request.phase').at(-1)?.phase
const reaches = (bench: Bench, phase: string) => until(() => phaseOf(bench) === phase)

/** The client leaves; within a second nothing is left of its request, here or on the nodes. */
const leaveAndCheck = async (bench: Bench, leave: () => void, phase: string, count = 1): Promise<void> => {
  const leftAt = performance.now()
  leave()
  const { outcome } = await settledRecord(bench, count)
  expect(outcome).toMatchObject({ end: 'client_disconnected', status: 499, phase })
  await until(() => bench.fakes.every((fake) => fake.running() === 0), 1_000)
  await bench.idle(1_000)
  expect(performance.now() - leftAt).toBeLessThan(1_000)
  expect(bench.of('request.settled')).toHaveLength(count)
}

/** Asks, and swallows the abort that will end it. */
const begin = (bench: Bench, shape: (typeof shapes)[number], more: object = {}) => {
  const client = new AbortController()
  const reply = ask(bench.url, shape, { signal: client.signal, ...more })
  reply.catch(() => {})
  return { client, reply }
}

describe('the client leaves', () => {
  test.each(SHAPES)('BL-D05 while it is held: nothing is sent later (%s)', (_name, shape) =>
    quietly([talker('ollama')], {}, async (bench) => {
      bench.router.fleet.setAdmission('a', 'paused')
      const { client } = begin(bench, shape)
      await reaches(bench, 'held')

      await leaveAndCheck(bench, () => client.abort(), 'held')

      bench.router.fleet.setAdmission('a', 'open')
      await Bun.sleep(50)
      expect(asked(bench.fakes[0] as never)).toEqual([])
    }),
  )

  test.each(SHAPES)('BL-D05 while it waits: the next in line goes on (%s)', (_name, shape) =>
    quietly([talker('llamacpp', { slots: 1 })], {}, async (bench) => {
      const first = begin(bench, shape)
      await reaches(bench, 'generating')
      const second = begin(bench, shape)
      await reaches(bench, 'waiting')
      const third = begin(bench, shape)
      await until(() => bench.router.fleet.overview().waiting === 2)

      second.client.abort()
      expect((await settledRecord(bench)).outcome).toMatchObject({
        end: 'client_disconnected',
        phase: 'waiting',
        bytes: 0,
      })
      first.client.abort()
      expect((await settledRecord(bench, 2)).outcome).toMatchObject({ end: 'client_disconnected', phase: 'generating' })
      await until(() => bench.router.fleet.overview().requests.streaming === 1)

      expect(asked(bench.fakes[0] as never)).toHaveLength(2)
      await leaveAndCheck(bench, () => third.client.abort(), 'generating', 3)
    }),
  )

  test.each(SHAPES)('BL-D05 BL-D06 while its model loads: no success, no failure, no bytes (%s)', (_name, shape) =>
    quietly([talker('ollama', { resident: [], models: [slowModel('m', { loadMs: 700 })] })], {}, async (bench) => {
      const { client } = begin(bench, shape)
      await reaches(bench, 'loading')

      await leaveAndCheck(bench, () => client.abort(), 'loading')

      const { outcome, failures } = await settledRecord(bench)
      expect(outcome).toMatchObject({ status: 499, bytes: 0, retries: 0 })
      expect(failures).toEqual([])
      const metrics = await bench.metrics()
      expect(metrics).toMatch(/fleet_requests_total\{[^}]*outcome="client_disconnected"\} 1/)
      for (const other of ['completed', 'failed', 'incomplete', 'rejected', 'expired'])
        expect(metrics).not.toMatch(new RegExp(`fleet_requests_total\\{[^}]*outcome="${other}"\\} [1-9]`))
      // The load belongs to the node and ends by itself; nobody is sent there afterwards.
      await until(() => bench.of('load.finished').length === 1)
      await Bun.sleep(20)
      expect(asked(bench.fakes[0] as never)).toEqual([])
    }),
  )

  test.each(pairs)('BL-D05 before the head of the answer: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([talker(kind)], quickPolls, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'slow', ms: 60_000 })
      const { client } = begin(bench, shape)
      await until(() => asked(bench.fakes[0] as never).length === 1)

      await leaveAndCheck(bench, () => client.abort(), 'prefill')

      expect(asked(bench.fakes[0] as never)[0]?.events.map(({ event }) => event)).toContain('client_closed')
    }),
  )

  test.each(pairs)('BL-D05 between the head and the first token: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([talker(kind)], quickPolls, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: 0, ms: 60_000 })
      const { client } = begin(bench, shape)
      await until(() => bench.fakes[0]?.running() === 1)

      await leaveAndCheck(bench, () => client.abort(), 'prefill')
    }),
  )

  test.each(pairs)('BL-D01 in the middle of a stream: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([talker(kind)], {}, async (bench) => {
      const { client, reply } = begin(bench, shape)
      await readSome(await reply, (text) => text.includes('tok2'))

      await leaveAndCheck(bench, () => client.abort(), 'generating')

      expect(asked(bench.fakes[0] as never)[0]?.events.map(({ event }) => event)).toContain('cancelled')
    }),
  )

  test.each(pairs)('BL-D01 from an answer that is not streamed: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([talker(kind)], quickPolls, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'freeze' })
      const { client } = begin(bench, shape, { stream: false })
      await until(() => asked(bench.fakes[0] as never).length === 1)

      await leaveAndCheck(bench, () => client.abort(), 'prefill')

      expect(asked(bench.fakes[0] as never)[0]?.events.map(({ event }) => event)).toContain('client_closed')
    }),
  )

  test.each(pairs)('BL-D08 after the last token, before the close: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([{ kind, resident: ['m'], answerTokens: 4, models: [fastModel()] }], {}, async (bench) => {
      // Everything that a client waits for is out; the connection is still open.
      const records = kind === 'ollama' ? 5 : 8
      bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: records, ms: 60_000 })
      const { client, reply } = begin(bench, shape)
      await readSome(await reply, (text) => text.includes('tok4'))
      await Bun.sleep(30)

      await leaveAndCheck(bench, () => client.abort(), 'generating')

      expect(bench.fakes[0]?.sockets.opened).toBeGreaterThan(0)
      await until(() => bench.router.upstream.stats().open === 0)
    }),
  )

  test.each(SHAPES)('BL-D01 by closing only its sending side, and goes on reading (%s)', (_name, shape) =>
    quietly([talker('llamacpp')], {}, async (bench) => {
      const client = await rawClient(bench.router.port)
      client.post(shape.path, shape.body({}))
      await until(() => client.text().includes('tok2'))

      await leaveAndCheck(bench, () => client.halfClose(), 'generating')
      client.socket.destroy()
    }),
  )

  test(`BL-D02 while the node is silent, on Bun ${Bun.version}`, () =>
    quietly([talker('llamacpp'), talker('ollama')], {}, async (bench) => {
      for (const fake of bench.fakes) fake.faults.add({ type: 'gap', afterChunks: 3, ms: 60_000 })
      for (const [index, shape] of [openAiChat, ollamaChat].entries()) {
        const client = await rawClient(bench.router.port)
        client.post(shape.path, shape.body({}))
        await until(() => client.text().includes('tok2'))

        await leaveAndCheck(bench, () => client.reset(), 'generating', index + 1)
      }
    }))
})

describe('many that leave', () => {
  test(
    'BL-D03 100 streams dropped after two tokens leave no connection behind',
    () =>
      quietly([talker('llamacpp', { models: [slowModel('m', { decodePerSecond: 400 })] })], {}, async (bench) => {
        const [fake] = bench.fakes
        for (let round = 1; round <= 100; round += 1) {
          const { client, reply } = begin(bench, round % 2 === 0 ? openAiChat : ollamaChat)
          await readSome(await reply, (text) => text.includes('tok2'))
          client.abort()
          await until(
            () => bench.of('request.settled').length === round && bench.router.upstream.stats().open <= 1,
            1_000,
          )
        }
        await until(() => fake?.running() === 0)

        expect(new Set(bench.of('request.settled').map(({ outcome }) => outcome.end))).toEqual(
          new Set(['client_disconnected']),
        )
        await bench.idle()
        expect(bench.router.upstream.stats().open).toBe(0)
      }),
    20_000,
  )

  test('BL-D08 five of eight leave at different moments: three slots stay taken, five are free', () => {
    const models = ['early', 'head', 'middle', 'last', 'reset', 'm'].map((name) =>
      name === 'last' ? fastModel(name) : slowModel(name),
    )
    const describe = () => ({ maxConcurrency: 8 })
    return quietly([{ kind: 'openai', models, slots: 8, answerTokens: 40 }], { describe }, async (bench) => {
      const { faults } = bench.fakes[0] as (typeof bench.fakes)[number]
      faults.add({ type: 'slow', ms: 60_000, match: { model: 'early' } })
      faults.add({ type: 'gap', afterChunks: 0, ms: 60_000, match: { model: 'head' } })
      faults.add({ type: 'gap', afterChunks: 44, ms: 60_000, match: { model: 'last' } })
      faults.add({ type: 'cut', afterChunks: 5, match: { model: 'reset' } })
      const stay = [1, 2, 3].map(() => begin(bench, openAiChat))
      const leave = ['early', 'head', 'middle', 'last', 'reset'].map((model) => begin(bench, openAiChat, { model }))
      const text = async (index: number, word: string) =>
        readSome((await leave[index]?.reply) as Response, (read) => read.includes(word))
      await Promise.all([text(2, 'tok3'), text(3, 'tok40'), text(4, 'tok3')])
      expect(bench.router.fleet.overview().inFlight).toBe(8)

      await until(() => bench.of('attempt.failed').length === 1 || bench.fakes[0]?.running() === 7)
      for (const { client } of leave) client.abort()

      await until(() => bench.router.fleet.overview().inFlight === 3, 1_000)
      bench.router.fleet.shared.desk.ledger.check()
      for (const { client } of stay) client.abort()
      await bench.idle(1_000)
    })
  })

  test('BL-D11 an Ollama that still reads the prompt of a client that left is not taken for idle', () => {
    const specs = [
      { kind: 'ollama' as const, resident: ['m'], slots: 1, models: [fastModel('m', { prefillPerSecond: 2 })] },
      { kind: 'ollama' as const, resident: [], models: [fastModel()] },
    ]
    return quietly(specs, { health: { pollEveryMs: 400 } }, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'linger' })
      const first = begin(bench, ollamaChat, { prompt: 'a prompt that takes its time to be read '.repeat(8) })
      await until(() => bench.fakes[0]?.running() === 1)
      first.client.abort()
      expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'client_disconnected', phase: 'prefill' })
      expect(bench.fakes[0]?.running()).toBe(1)

      const reply = await ask(bench.url, ollamaChat)
      await reply.text()

      expect(reply.headers.get('x-fleet-node')).toBe('b')
      const { rounds } = await settledRecord(bench, 2)
      const verdict = rounds[0]?.nodes.find(({ node }) => node === 'a') as { terms?: object }
      expect(verdict.terms).toMatchObject({ tier: 'busy', in_flight: 1, free: 0 })
      // The next report that began after the cancel ends it.
      await until(() => bench.router.fleet.queues().every(({ lingering }) => lingering === 0), 1_500)
      await bench.idle()
    })
  })
})
