import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../../src/domain/errors'
import type { NodeKind } from '../../../src/domain/node'
import { adapterFor } from '../../../src/nodes'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { createTokenCount } from '../../../src/nodes/token-count'
import { readTokenQuestion } from '../../../src/wire/anthropic'
import type { CountablePrompt } from '../../../src/wire/token-count'
import { nodeAt, type Recording, replay } from '../../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const { signal } = new AbortController()
const tool = { name: 'now', input_schema: { type: 'object' } }

const promptOf = (more: object = {}): CountablePrompt => {
  const body = { model: 'claude', messages: [{ role: 'user', content: 'hi' }], tools: [tool], ...more }
  const { prompt } = readTokenQuestion(new TextEncoder().encode(JSON.stringify(body)))
  if (!prompt) throw new Error('no engine may count this')
  return prompt
}

/** Asks nodes of one kind, a server for each set of routes, in order. */
const countOn = async (
  kind: NodeKind,
  servers: readonly Recording['routes'][],
  { prompt = promptOf(), limitMs = 1_000 }: { readonly prompt?: CountablePrompt; readonly limitMs?: number } = {},
) => {
  const replays = servers.map((routes) => replay({ routes, headers: undefined }))
  const holders = replays.map(({ url }, index) => ({ node: nodeAt(url, kind, { name: `n${index}` }), model: 'm' }))
  const counted = await createTokenCount({ adapters: adapterFor, http, limitMs })(holders, prompt, signal)
  for (const { stop } of replays) stop()
  return { counted, logs: replays.map(({ log }) => log) }
}

const props = { 'GET /props?model=m&autoload=false': { status: 200, body: { is_sleeping: false } } }
const counts = { 'POST /v1/messages/count_tokens?autoload=false#m': { status: 200, body: { input_tokens: 24 } } }
const renders = {
  'POST /apply-template?autoload=false#m': { status: 200, body: { prompt: '<user>hi' } },
  'POST /tokenize?autoload=false#m': { status: 200, body: { tokens: [1, 2, 3] } },
}

describe('llama-server', () => {
  test('counts by itself, and its router starts nothing for that', async () => {
    const { counted, logs } = await countOn('llamacpp', [{ ...props, ...counts, ...renders }])

    expect(counted).toEqual({ node: 'n0', tokens: 24 })
    expect(logs).toEqual([[...Object.keys(props), ...Object.keys(counts)]])
  })

  test('writes out the prompt and cuts it into tokens where it has no count of its own', async () => {
    const { counted, logs } = await countOn('llamacpp', [{ ...props, ...renders }])

    expect(counted).toEqual({ node: 'n0', tokens: 3 })
    expect(logs[0]?.slice(2)).toEqual(Object.keys(renders))
  })

  test('is asked in the terms in which it will be asked to answer', async () => {
    const prompt = promptOf({ thinking: { type: 'disabled' } })
    const { counted } = await countOn('llamacpp', [{ ...props, ...counts, ...renders }], { prompt })

    expect(prompt.anthropic).toBeUndefined()
    expect(counted?.tokens).toBe(3)
  })

  test.each([
    ['sleeps', { 'GET /props?model=m&autoload=false': { status: 200, body: { is_sleeping: true } } }],
    ['has unloaded the model', { 'GET /props?model=m&autoload=false': { status: 400, body: {} } }],
  ])('is not asked to count when it %s', async (_, asleep) => {
    const { counted, logs } = await countOn('llamacpp', [{ ...asleep, ...counts }])

    expect(counted).toBeUndefined()
    expect(logs).toEqual([Object.keys(asleep)])
  })
})

test('vLLM is given what its template reads, and no more', async () => {
  const bodies: unknown[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      bodies.push(new URL(request.url).pathname, await request.json())
      return Response.json({ count: 17, max_model_len: 8_192, tokens: [] })
    },
  })
  const node = nodeAt(server.url.origin, 'vllm')
  const prompt = promptOf({ system: 'Be short.', max_tokens: 5, temperature: 1 })

  const counted = await createTokenCount({ adapters: adapterFor, http })([{ node, model: 'org/m' }], prompt, signal)
  server.stop(true)

  expect(counted).toEqual({ node: 'rig', tokens: 17 })
  expect(bodies).toEqual([
    '/tokenize',
    {
      model: 'org/m',
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'hi' },
      ],
      tools: [{ type: 'function', function: { name: 'now', parameters: { type: 'object' } } }],
      add_generation_prompt: true,
    },
  ])
})

describe('among several nodes', () => {
  test('the next one is asked when one cannot tell', async () => {
    const { counted } = await countOn('llamacpp', [{}, { ...props, ...counts }])

    expect(counted).toEqual({ node: 'n1', tokens: 24 })
  })

  test('no more than two are asked', async () => {
    const { counted, logs } = await countOn('llamacpp', [{}, {}, { ...props, ...counts }])

    expect(counted).toBeUndefined()
    expect(logs[2]).toEqual([])
  })

  test('those of a kind that cannot count are not asked', async () => {
    const { counted, logs } = await countOn('ollama', [{ ...props, ...counts }])

    expect(counted).toBeUndefined()
    expect(logs).toEqual([[]])
  })
})

test('a node that hangs costs no more than the limit', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  const startedAt = performance.now()
  const node = nodeAt(server.url.origin, 'vllm')

  const counted = await createTokenCount({ adapters: adapterFor, http, limitMs: 50 })(
    [
      { node, model: 'm' },
      { node, model: 'm' },
    ],
    promptOf(),
    signal,
  )
  await server.stop(true)

  expect(counted).toBeUndefined()
  expect(performance.now() - startedAt).toBeWithin(40, 1_000)
})

test('a flood of counts is left to estimates, and leaves connections for the polls', async () => {
  const answers: ((tokens: number) => void)[] = []
  const countTokens = () => new Promise<number>((resolve) => answers.push(resolve))
  const count = createTokenCount({ adapters: () => ({ countTokens }), http, limitMs: 5_000 })
  const ask = () => count([{ node: nodeAt('http://127.0.0.1:1', 'vllm'), model: 'm' }], promptOf(), signal)

  const asked = Array.from({ length: 65 }, ask)
  const beyond = await asked.at(-1)
  const atOnce = answers.length
  for (const answer of answers) answer(7)
  const counted = await Promise.all(asked.slice(0, -1))
  const later = ask()
  answers.at(-1)?.(8)

  expect(beyond).toBeUndefined()
  expect(atOnce).toBe(64)
  expect(counted.every((each) => each?.tokens === 7)).toBe(true)
  expect((await later)?.tokens).toBe(8)
})

test('a control address is where counts go', async () => {
  const server = replay({ routes: { ...props, ...counts }, headers: undefined })
  const node = nodeAt('http://127.0.0.1:1', 'llamacpp', { residencyUrl: server.url })

  const counted = await createTokenCount({ adapters: adapterFor, http })([{ node, model: 'm' }], promptOf(), signal)
  server.stop()

  expect(counted?.tokens).toBe(24)
})

test('what no engine can read is left to an estimate; a defect of ours is not hidden', async () => {
  const asking = (error: Error) =>
    createTokenCount({ adapters: () => ({ countTokens: () => Promise.reject(error) }), http })(
      [{ node: nodeAt('http://127.0.0.1:1', 'vllm'), model: 'm' }],
      promptOf(),
      signal,
    )

  expect(await asking(new RouterError('not_supported', 'A document.'))).toBeUndefined()
  expect(asking(new TypeError('a defect'))).rejects.toThrow('a defect')
})
