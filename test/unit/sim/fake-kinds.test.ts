import { expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { identify } from '../../../src/nodes/fingerprint'
import { nodeKindOf } from '../../../src/sim/fake/kinds'
import type { FakeKind } from '../../../src/sim/fake/options'
import { askChat, chatText, fastModel, getJson, readJson, slowModel, until, withFakes } from '../../support/fakes'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

const KINDS: readonly FakeKind[] = [
  'ollama',
  'lmstudio',
  'lmstudio-v0',
  'llamaswap',
  'llamacpp',
  'llamacpp-router',
  'vllm',
  'openai',
]

test.each(KINDS)('%s is taken for what it is, and answers', (kind) =>
  withFakes([{ kind }], async (fake) => {
    expect(await identify(fake!.url, http, signal)).toMatchObject({ kind: nodeKindOf(kind) })
    expect(chatText(await (await askChat(fake!)).text())).not.toBe('')
  }),
)

test.each(['lmstudio', 'lmstudio-v0', 'llamaswap'] as const)('%s loads a model for the request that needs it', (kind) =>
  withFakes([{ kind, maxResident: 1, models: ['a', 'b'].map((name) => fastModel(name)) }], async (fake) => {
    for (const model of ['a', 'b']) expect((await askChat(fake!, { model })).status).toBe(200)

    expect(fake!.loads.map(({ model, evicted }) => [model, evicted])).toEqual([
      ['a', []],
      ['b', ['a']],
    ])
  }),
)

test('LM Studio answers 200 to a path that it does not know, the older one also to the newer API', () =>
  withFakes([{ kind: 'lmstudio' }, { kind: 'lmstudio-v0' }], async (newer, older) => {
    const unknown = { status: 200, json: { error: expect.stringContaining('Returning 200 anyway') } }
    expect(await getJson(`${newer!.url}/nothing`)).toMatchObject(unknown)
    expect(await getJson(`${older!.url}/api/v1/models`)).toMatchObject(unknown)
    expect((await getJson(`${newer!.url}/api/v1/models`)).json.models).toHaveLength(1)
    expect((await getJson(`${older!.url}/api/v0/models`)).json.data).toMatchObject([{ state: 'not-loaded' }])
  }))

test('LM Studio reads a prompt to its end although its client left', () =>
  withFakes([{ kind: 'lmstudio', models: [slowModel('m', { prefillPerSecond: 1_000 })] }], async (fake) => {
    const control = new AbortController()
    askChat(fake!, { prompt: 'x'.repeat(1_000), signal: control.signal }).catch(() => {})
    await until(() => fake!.running() === 1)
    control.abort()
    await until(() => fake!.log[0]!.events.some(({ event }) => event === 'cancelled'))

    expect(fake!.running()).toBe(1)
    await until(() => fake!.running() === 0)
  }))

test('llama-swap refuses the eleventh request for one model, and says when to come back', () =>
  withFakes([{ kind: 'llamaswap', resident: ['m'], models: [slowModel()], answerTokens: 1000 }], async (fake) => {
    const control = new AbortController()
    for (let i = 0; i < 10; i += 1) askChat(fake!, { signal: control.signal }).catch(() => {})
    await until(() => fake!.log.length === 10)
    const refused = await askChat(fake!)
    control.abort()

    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    expect((await readJson(refused)).error.code).toBe('concurrency_limit')
  }))

test('vLLM knows no model but its own', () =>
  withFakes([{ kind: 'vllm' }], async (fake) => {
    const answer = await askChat(fake!, { model: 'x' })
    expect(answer.status).toBe(404)
    expect(await readJson(answer)).toMatchObject({ error: { message: 'The model `x` does not exist.', code: 404 } })
  }))
