import { expect, test } from 'bun:test'
import { fastModel } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'

const small = fastModel('m', { defaultContextTokens: 1_024 })
const fakeOllama = { kind: 'ollama', models: [small] } as const

const ask = async ({ ollama, idle }: Bench, options: object): Promise<void> => {
  const reply = await ollama({ stream: false, more: { options } })
  expect(reply.status).toBe(200)
  await reply.json()
  await idle()
}

const generate = async ({ url }: Bench, body: object): Promise<{ status: number; body: unknown }> => {
  const reply = await fetch(`${url}/api/generate`, { method: 'POST', body: JSON.stringify({ model: 'm', ...body }) })
  return { status: reply.status, body: await reply.json() }
}

test('BL-X02 two clients, one with a window of its own and one without, share one load', () =>
  withRouter([fakeOllama], {}, async (bench) => {
    for (let turn = 0; turn < 10; turn++) await ask(bench, turn % 2 === 0 ? { num_ctx: 3_000 } : {})

    expect(bench.fakes[0]?.loads.map(({ contextTokens }) => contextTokens)).toEqual([3_000])
  }))

test('BL-X01 a smaller num_ctx meets the loaded window, and other load-time options reload nothing either', () =>
  withRouter([fakeOllama], {}, async (bench) => {
    await ask(bench, { num_ctx: 4_096 })
    await ask(bench, { num_ctx: 2_048 })
    await ask(bench, { num_thread: 1, num_gpu: 0 })

    expect(bench.fakes[0]?.loads).toHaveLength(1)
  }))

test("BL-X05 a client whose protocol has no window gets the node's configured one from the first request on", () =>
  withRouter(
    [{ kind: 'ollama', models: [fastModel('m', { defaultContextTokens: 1_024, contextTokens: 131_072 })] }],
    { describe: () => ({ contextTokens: 65_536 }) },
    async (bench) => {
      for (const words of [1, 1_000, 10_000, 40_000]) {
        const reply = await bench.chat({ stream: false, prompt: 'word '.repeat(words) })
        expect(reply.status).toBe(200)
        await reply.json()
        await bench.idle()
      }

      expect(bench.fakes[0]?.loads.map(({ contextTokens }) => contextTokens)).toEqual([65_536])
    },
  ))

test('a request that unloads a model which is not in memory loads nothing', () =>
  withRouter([fakeOllama], {}, async (bench) => {
    const reply = await generate(bench, { keep_alive: 0 })

    expect(reply).toMatchObject({ status: 200, body: { model: 'm', response: '', done: true, done_reason: 'unload' } })
    expect(bench.fakes[0]?.loads).toEqual([])
  }))

test('a request that only loads is answered where the model is in memory anyway, and needs no Ollama', () =>
  withRouter([{ kind: 'llamacpp', models: [small] }], {}, async (bench) => {
    const loaded = await generate(bench, {})
    const unloaded = await generate(bench, { keep_alive: '0s' })

    expect(loaded).toMatchObject({ status: 200, body: { model: 'm', response: '', done: true, done_reason: 'load' } })
    expect(unloaded.status).toBe(400)
    await bench.idle()
  }))

const shared = [
  { kind: 'llamacpp', models: [small] },
  { kind: 'ollama', models: [small], resident: ['m'] },
  { kind: 'ollama', models: [small] },
] as const

const residentOf = async ({ json }: Bench): Promise<readonly unknown[]> => {
  const { nodes } = (await json('/api/v1/nodes')) as { nodes: { name: string; resident: unknown[] }[] }
  return nodes.flatMap(({ name, resident }) => (resident.length > 0 ? [name] : []))
}

test('a model that other kinds of nodes hold too is unloaded where Ollama holds it', () =>
  withRouter(shared, {}, async (bench) => {
    expect(await residentOf(bench)).toEqual(['a', 'b'])

    expect(await generate(bench, { keep_alive: 0 })).toMatchObject({ status: 200, body: { done_reason: 'unload' } })

    await bench.idle()
    expect(bench.of('request.placed').map(({ decision }) => decision.node)).toEqual(['b'])
  }))

test('an unload that is pinned to a node without the model in memory loads nothing', () =>
  withRouter(shared, {}, async (bench) => {
    const reply = await fetch(`${bench.url}/api/generate`, {
      method: 'POST',
      headers: { 'x-fleet-node': 'c' },
      body: JSON.stringify({ model: 'm', keep_alive: 0 }),
    })

    expect(await reply.json()).toMatchObject({ done_reason: 'unload' })
    expect(bench.fakes.map(({ loads }) => loads)).toEqual([[], [], []])
  }))
