import { describe, expect, test } from 'bun:test'
import type { FakeKind } from '../../src/sim/fake/options'
import { chatText, fastModel, slowModel, until } from '../support/fakes'
import { withRouter } from '../support/router'

const health = { pollEveryMs: 50 } as const

/** A slow model that is in memory, and another one that is not. */
const two = [slowModel('m1'), fastModel('m2', { loadMs: 60 })]

describe('an engine that evicts busy models', () => {
  const kinds: readonly FakeKind[] = ['lmstudio', 'lmstudio-v0', 'llamaswap']

  for (const kind of kinds) {
    test(`BL-C01 ${kind}: a request for another model waits until the running answer has ended`, () =>
      withRouter(
        [{ kind, maxResident: 1, resident: ['m1'], models: two, answerTokens: 12 }],
        { health },
        async ({ chat, fakes, idle, of, router }) => {
          const [fake] = fakes
          fake!.faults.add({ type: 'evict_busy' })
          const first = await chat({ model: 'm1' })
          const second = chat({ model: 'm2' })
          await until(() => router.fleet.waiters().some(({ model }) => model === 'm2'))
          await Bun.sleep(150)

          expect(router.fleet.waiters()).toMatchObject([{ model: 'm2', kind: 'waiting' }])
          expect(fake!.resident()).toEqual(['m1'])
          expect(chatText(await first.text()).split(' ')).toHaveLength(12)
          expect(chatText(await (await second).text())).not.toBe('')
          await idle()
          expect(fake!.interrupted()).toBe(0)
          expect(fake!.loads.map(({ model, evicted }) => [model, evicted])).toEqual([['m2', ['m1']]])
          expect(of('request.settled').map(({ asked, residency, outcome }) => [asked, residency, outcome.end])).toEqual(
            [
              ['m1', 'resident', 'completed'],
              ['m2', 'cold', 'completed'],
            ],
          )
        },
      ))

    test(`BL-C01 ${kind}: three models asked for at once and in turn cut no answer, and nobody waits for ever`, () =>
      withRouter(
        [{ kind, maxResident: 1, models: ['m1', 'm2', 'm3'].map((name) => fastModel(name)) }],
        { health },
        async ({ chat, fakes, idle }) => {
          const [fake] = fakes
          fake!.faults.add({ type: 'evict_busy' })

          const answers = await Promise.all(
            Array.from({ length: 30 }, (_, i) => chat({ model: `m${(i % 3) + 1}`, stream: i % 2 === 0 })),
          )

          expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200))
          await Promise.all(answers.map((answer) => answer.text()))
          await idle()
          expect(fake!.interrupted()).toBe(0)
        },
      ))
  }

  test('BL-C01 lmstudio-v0: another node with the model takes the request at once', () =>
    withRouter(
      [
        { kind: 'lmstudio-v0', maxResident: 1, resident: ['m1'], models: two, answerTokens: 1000 },
        { kind: 'llamaswap', models: [fastModel('m2')] },
      ],
      { health },
      async ({ chat, of }) => {
        const control = new AbortController()
        await chat({ model: 'm1', signal: control.signal })
        const second = await chat({ model: 'm2' })

        expect(second.headers.get('x-fleet-node')).toBe('b')
        await second.text()
        control.abort()
        expect(of('attempt.failed')).toEqual([])
      },
    ))
})

describe('a model that only a request loads', () => {
  test('is asked for by one request, which stands for the load; the next waits and finds it in memory', () =>
    withRouter(
      [{ kind: 'lmstudio-v0', models: [fastModel('m', { loadMs: 200 })] }],
      { health, describe: () => ({ maxConcurrency: 4 }) },
      async ({ chat, fakes, idle, of, router }) => {
        const answers = [chat(), chat()]
        await until(() => router.fleet.waiters().length === 1)
        await until(() => fakes[0]!.log.some(({ method }) => method === 'POST'))
        expect(router.fleet.nodes()[0]).toMatchObject({ loading: 'm', inFlight: 1 })
        expect(fakes[0]!.log.filter(({ method }) => method === 'POST')).toHaveLength(1)

        for (const answer of answers) expect((await answer).status).toBe(200)
        await Promise.all(answers.map(async (answer) => (await answer).text()))
        await idle()
        expect(fakes[0]!.loads).toHaveLength(1)
        expect(of('request.settled').map(({ residency }) => residency)).toEqual(['cold', 'resident'])
        await until(() => router.fleet.nodes()[0]?.loading === undefined)
      },
    ))

  test('its failed load is the failure of that request alone', () =>
    withRouter(
      [{ kind: 'lmstudio-v0', models: [fastModel('m', { loadMs: 100 })] }],
      { health, policy: { retries: 0 }, describe: () => ({ maxConcurrency: 4 }) },
      async ({ chat, fakes, idle, router }) => {
        fakes[0]!.faults.add({ type: 'fail_load', times: 1 })
        const first = chat()
        const second = chat()

        expect([(await first).status, (await second).status].sort()).toEqual([200, 502])
        await (await second).text()
        await (await first).text()
        await idle()
        await until(() => router.fleet.nodes()[0]?.loading === undefined)
      },
    ))
})

describe('llama-swap', () => {
  test('is told to load before the request is sent, and its 429 goes elsewhere', () =>
    withRouter([{ kind: 'llamaswap' }, { kind: 'vllm' }], { health }, async ({ chat, fakes, of }) => {
      const [swap] = fakes
      expect((await chat({ headers: { 'x-fleet-node': 'a' } })).status).toBe(200)
      expect(swap!.log.map(({ path }) => path)).toContain('/upstream/m/health')
      expect(of('load.finished')).toMatchObject([{ node: 'a', model: 'm' }])

      swap!.faults.add({ type: 'status', status: 429, message: 'Too many requests', headers: { 'retry-after': '1' } })
      for (let i = 0; i < 3; i += 1) expect((await chat()).status).toBe(200)
      expect(of('attempt.failed').every(({ node, failure }) => node === 'a' && failure.class === 'overloaded')).toBe(
        true,
      )
      expect(of('attempt.failed').length).toBeGreaterThan(0)
      expect(of('node.breaker')).toEqual([])
    }))

  test('no poll stops what runs: GET /unload is never sent', () =>
    withRouter([{ kind: 'llamaswap', resident: ['m'] }], { health }, async ({ fakes }) => {
      await until(() => fakes[0]!.log.filter(({ path }) => path === '/running').length > 3)
      const paths = new Set(fakes[0]!.log.map(({ method, path }) => `${method} ${path}`))
      expect([...paths].sort()).toEqual(['GET /api/version', 'GET /running', 'GET /v1/models'])
    }))
})

describe('vLLM', () => {
  test('runs as many at once as the configuration allows, foreign requests counted', () =>
    withRouter(
      [{ kind: 'vllm', slots: 16, models: [slowModel()], answerTokens: 1000 }],
      { health, describe: () => ({ maxConcurrency: 8 }) },
      async ({ chat, fakes, router }) => {
        const control = new AbortController()
        for (let i = 0; i < 10; i += 1) chat({ signal: control.signal }).catch(() => {})
        await until(() => fakes[0]!.running() === 8)

        expect(router.fleet.overview()).toMatchObject({ inFlight: 8, waiting: 2 })
        control.abort()
      },
    ))

  test('whose engine died is not used, although its HTTP server answers', () =>
    withRouter([{ kind: 'vllm' }, { kind: 'llamacpp' }], { health: { ...health, offlineAfter: 1 } }, async (bench) => {
      const { chat, fakes, router } = bench
      fakes[0]!.faults.add({ type: 'status', status: 503, on: 'polls', match: { path: '/health' } })
      await until(() => router.fleet.nodes()[0]?.health === 'offline')

      for (let i = 0; i < 3; i += 1) expect((await chat()).headers.get('x-fleet-node')).toBe('b')
      expect(router.fleet.nodes()[0]?.healthReason).toContain('the engine of a is dead')
    }))
})

describe('BL-N05', () => {
  test('BL-N05 the list shows what the node answers to, and the name in the configuration reaches it', () =>
    withRouter(
      [{ kind: 'vllm', models: [fastModel('ctl')] }],
      { health, describe: () => ({ models: ['org/ctl'] }) },
      async ({ chat, json }) => {
        const { data } = (await json('/v1/models')) as { data: { id: string }[] }
        expect(data.map(({ id }) => id)).toEqual(['ctl'])

        const answer = await chat({ model: 'org/ctl', stream: false })
        expect(answer.status).toBe(200)
        expect(await answer.json()).toMatchObject({ model: 'org/ctl' })
      },
    ))

  const missing = { type: 'status', status: 404, message: 'The model `m` does not exist.' } as const

  test('BL-N05 a node that does not know what it listed loses the model until its next report, and another one answers', () =>
    withRouter(
      [{ kind: 'vllm' }, { kind: 'openai' }],
      { health: { pollEveryMs: 600 } },
      async ({ chat, fakes, of, router, json }) => {
        fakes[0]!.faults.add(missing)
        const holders = () => router.fleet.models().flatMap(({ nodes }) => nodes.map(({ node }) => node))

        while (of('attempt.failed').length === 0) {
          const answer = await chat()
          expect([answer.status, answer.headers.get('x-fleet-node')]).toEqual([200, 'b'])
          await answer.text()
        }
        expect(of('attempt.failed')).toMatchObject([
          { node: 'a', model: 'm', retried: true, failure: { class: 'model_missing', status: 404 } },
        ])
        expect(holders()).toEqual(['b'])
        expect(of('node.breaker')).toEqual([])
        expect(await json('/api/v1/requests/last')).toMatchObject({ outcome: { end: 'completed', node: 'b' } })

        fakes[0]!.faults.clear()
        await until(() => holders().length === 2)
      },
    ))

  test('BL-N05 when nobody knows the model the client hears that at once, as a 404', () =>
    withRouter([{ kind: 'vllm' }], { health: { pollEveryMs: 10_000 } }, async ({ chat, fakes, of }) => {
      fakes[0]!.faults.add(missing)
      const startedAt = performance.now()
      const answer = await chat()

      expect(of('request.settled')).toMatchObject([{ outcome: { end: 'rejected', status: 404 } }])
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ error: { code: 'model_not_found' } })
      expect(performance.now() - startedAt).toBeLessThan(2_000)
    }))
})

test('residency_url is asked what the node holds and told to load; requests go to url', () =>
  withRouter(
    [{ kind: 'openai' }, { kind: 'llamaswap' }],
    { health, awaitNodes: false },
    async ({ fakes, router, chat }) => {
      const [front, swap] = fakes
      router.fleet.removeNode('a')
      router.fleet.removeNode('b')
      const description = { kind: 'llamaswap', origin: 'configured', tags: [], distance: 0 } as const
      router.fleet.addNode({ ...description, name: 'c', url: front!.url, residencyUrl: swap!.url })
      await until(() => router.fleet.nodes().some(({ name, health }) => name === 'c' && health === 'online'))
      front!.log.splice(0)
      const answer = await chat()

      expect([answer.status, answer.headers.get('x-fleet-node')]).toEqual([200, 'c'])
      await answer.text()
      expect(swap!.log.map(({ path }) => path)).toContain('/upstream/m/health')
      expect(swap!.log.some(({ method }) => method === 'POST')).toBe(false)
      expect(front!.log.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /v1/chat/completions'])
    },
  ))
