import { expect, test } from 'bun:test'
import type { NodeView } from '../../src/ports/fleet'
import { fastModel, type Json, slowModel, until } from '../support/fakes'
import { quietly } from './clients'

const nodesOf = async (json: (path: string) => Promise<unknown>): Promise<NodeView[]> =>
  ((await json('/api/v1/nodes')) as { nodes: NodeView[] }).nodes

const drain = async (reply: Response | Promise<Response>): Promise<number> => {
  const answer = await reply
  await answer.text()
  return answer.status
}

test('BL-H01 fast failures attract no traffic: a few, then one try per back-off; every request succeeds', () =>
  quietly(
    [
      { kind: 'llamacpp', slots: 32 },
      { kind: 'llamacpp', slots: 32, models: [fastModel('m', { decodePerSecond: 80 })] },
    ],
    { health: { breakerRetryMs: 300, breakerRetryMaxMs: 600 } },
    async ({ fakes, chat, idle, of }) => {
      const [bad, good] = fakes
      bad?.faults.add({ type: 'status', status: 503, afterMs: 5 })
      const started = performance.now()

      const all: Promise<number>[] = []
      for (let at = 0; at < 100; at++) {
        all.push(drain(chat({ stream: false })))
        await Bun.sleep(10)
      }

      expect(await Promise.all(all)).toEqual(Array(100).fill(200))
      const tries = 1 + Math.ceil((performance.now() - started) / 300)
      const atBad = bad?.log.filter(({ method }) => method === 'POST').length ?? 0
      expect(atBad).toBeLessThanOrEqual(5 + tries)
      expect(good?.log.filter(({ method }) => method === 'POST').length).toBe(100)
      expect(of('node.breaker').filter(({ breaker }) => breaker === 'half_open').length).toBeLessThanOrEqual(tries)
      await idle()
    },
  ))

test('BL-H01 a node that only says that it is busy gets no more than its turn either, and nobody fails by it', () =>
  quietly(
    [
      { kind: 'llamacpp', slots: 32 },
      { kind: 'llamacpp', slots: 32, models: [fastModel('m', { decodePerSecond: 80 })] },
    ],
    {},
    async ({ fakes, chat, idle }) => {
      fakes[0]?.faults.add({ type: 'status', status: 429, afterMs: 5 })

      const all: Promise<number>[] = []
      for (let at = 0; at < 50; at++) {
        all.push(drain(chat({ stream: false })))
        await Bun.sleep(10)
      }

      expect(await Promise.all(all)).toEqual(Array(50).fill(200))
      const atBusy = fakes[0]?.log.filter(({ method }) => method === 'POST').length ?? 0
      expect(atBusy).toBeLessThanOrEqual(10)
      await idle()
    },
  ))

test('BL-H02 an open breaker is the one state everywhere: nodes, overview, readiness, metrics, records', () =>
  quietly([{ kind: 'ollama' }], {}, async ({ fakes, chat, json, url, metrics }) => {
    fakes[0]?.faults.add({ type: 'status', status: 500 })
    for (let at = 0; at < 5; at++) await drain(chat())

    const [node] = await nodesOf(json)
    expect(node).toMatchObject({ state: 'circuit_open', breaker: 'open', health: 'online' })
    expect(node?.breakerReason).toContain('500')
    expect(node?.breakerRetryAt).toBeGreaterThan(node?.breakerSince ?? Number.POSITIVE_INFINITY)
    expect(await json('/api/v1/overview')).toMatchObject({ healthyNodes: 0, nodes: 1 })
    expect((await fetch(`${url}/readyz`)).status).toBe(503)
    const text = await metrics()
    expect(text).toContain('fleet_node_state{node="a",state="circuit_open"} 1')
    expect(text).toContain('fleet_healthy_nodes 0')
  }))

test('BL-H03 polls of a node with an embedding model only read, and a chat that it refuses with 400 is no failure', () =>
  quietly(
    [
      {
        kind: 'ollama',
        models: [fastModel('nomic-embed', { capabilities: ['embedding'] })],
        resident: ['nomic-embed'],
      },
    ],
    { health: { pollEveryMs: 20 } },
    async ({ fakes, chat, json }) => {
      const [fake] = fakes
      await Bun.sleep(600)
      const calls = fake?.log.map(({ method, path }) => `${method} ${path}`) ?? []
      expect(calls.length).toBeGreaterThan(20)
      const reads = ['GET /api/ps', 'GET /api/tags', 'GET /api/version', 'POST /api/show']
      expect(calls.filter((call) => !reads.includes(call))).toEqual([])
      expect(fake?.resident()).toEqual(['nomic-embed'])

      expect((await chat({ model: 'nomic-embed' })).status).toBe(400)
      expect((await nodesOf(json))[0]).toMatchObject({ state: 'online', breaker: 'closed' })
      expect(fake?.loads).toEqual([])
    },
  ))

test('BL-H04 a saturated node that is slow to list its models is not taken for dead', () =>
  quietly(
    [{ kind: 'ollama', slots: 2, models: [slowModel()], resident: ['m'], answerTokens: 12 }],
    {
      health: { pollEveryMs: 50, pollTimeoutMs: 100, offlineAfter: 2 },
      describe: () => ({ maxConcurrency: 2 }),
    },
    async ({ fakes, chat, of, idle }) => {
      fakes[0]?.faults.add({ type: 'slow', ms: 400, on: 'polls' })

      const all = Array.from({ length: 4 }, () => drain(chat()))

      expect(await Promise.all(all)).toEqual([200, 200, 200, 200])
      expect(of('node.health').filter(({ health }) => health === 'offline')).toEqual([])
      await idle()
    },
  ))

test(
  'BL-H11 a node that swallows every packet delays no list of models, and its models vanish in time',
  () =>
    quietly(
      ['only-a', 'm', 'm', 'm', 'm'].map((name) => ({ kind: 'ollama' as const, models: [fastModel(name)] })),
      { health: { pollEveryMs: 100, pollTimeoutMs: 300, offlineAfter: 3 } },
      async ({ fakes, url }) => {
        const names = async (): Promise<string[]> => {
          const { data } = (await (await fetch(`${url}/v1/models`)).json()) as Json
          return data.map(({ id }: { id: string }) => id)
        }
        expect((await names()).sort()).toEqual(['m:latest', 'only-a:latest'])
        await fetch(`${url}/api/tags`)
        fakes[0]?.faults.add({ type: 'blackhole' })

        const times: number[] = []
        for (let at = 0; at < 40; at++) {
          const started = performance.now()
          await drain(fetch(`${url}${at % 2 === 0 ? '/v1/models' : '/api/tags'}`))
          times.push(performance.now() - started)
          await Bun.sleep(15)
        }
        // A busy machine may hold one of them up; none may have waited for the node.
        times.sort((a, b) => a - b)
        expect(times[Math.floor(times.length * 0.95)]).toBeLessThan(20)
        expect(times.at(-1)).toBeLessThan(200)

        const offlineMs = 3 * (100 + 300) + 500
        const end = performance.now() + offlineMs
        let left = await names()
        while (left.includes('only-a:latest') && performance.now() < end) {
          await Bun.sleep(20)
          left = await names()
        }
        expect(left).toEqual(['m:latest'])
      },
    ),
  10_000,
)

test('BL-H12 BL-C03 models listed beyond their expiry, and generations that hang: the other node answers', () =>
  quietly(
    [
      { kind: 'ollama', slots: 4, resident: ['m'] },
      { kind: 'ollama', slots: 4 },
    ],
    {
      health: { pollEveryMs: 50, stallAfterMs: 300, stallRequests: 3 },
      describe: () => ({ maxConcurrency: 4 }),
    },
    async ({ fakes, chat, idle, json, of }) => {
      const [stuck, cold] = fakes
      stuck?.faults.add({ type: 'freeze' })

      const first = Array.from({ length: 4 }, () => drain(chat()))
      await until(() => of('node.health').some(({ node, health }) => node === 'a' && health === 'suspect'), 2_000)
      const later = Array.from({ length: 4 }, () => drain(chat()))

      expect(await Promise.all([...first, ...later])).toEqual(Array(8).fill(200))
      expect(cold?.loads).toHaveLength(1)
      expect((await nodesOf(json)).find(({ name }) => name === 'a')?.healthReason).toContain('no_progress')
      stuck?.faults.clear('freeze')

      stuck?.faults.add({ type: 'stale_expiry', agoMs: 60_000 })
      await Bun.sleep(150)
      const before = stuck?.log.filter(({ path }) => path === '/api/chat').length
      expect(await Promise.all([drain(chat()), drain(chat())])).toEqual([200, 200])
      expect(stuck?.log.filter(({ path }) => path === '/api/chat').length).toBe(before)
      await idle()
    },
  ))

test(
  'BL-W01 cancels by the dozen open no breaker and are no failure of the node',
  () =>
    quietly(
      [{ kind: 'ollama', slots: 4, models: [fastModel('m', { prefillPerSecond: 10 })], resident: ['m'] }],
      { health: { pollEveryMs: 100 }, describe: () => ({ maxConcurrency: 4 }) },
      async ({ chat, json, of, idle }) => {
        for (let round = 0; round < 3; round++) {
          const all = Array.from({ length: 32 }, () =>
            chat({ stream: false, signal: AbortSignal.timeout(50) }).then(
              () => 'answered',
              () => 'left',
            ),
          )
          expect(await Promise.all(all)).toEqual(Array(32).fill('left'))
        }

        const answers = await Promise.all(Array.from({ length: 10 }, () => drain(chat())))

        expect(answers).toEqual(Array(10).fill(200))
        expect((await nodesOf(json))[0]).toMatchObject({ state: 'online', breaker: 'closed' })
        expect(of('attempt.failed')).toEqual([])
        expect(of('node.breaker')).toEqual([])
        await idle()
      },
    ),
  10_000,
)
