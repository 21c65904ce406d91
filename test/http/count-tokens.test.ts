import { describe, expect, test } from 'bun:test'
import type { NodeDescription } from '../../src/domain/node'
import type { ModelView, NodeView } from '../../src/ports/fleet'
import { dialects } from '../../src/wire'
import type { Holder } from '../../src/wire/token-count'
import { hashKey } from '../../src/config/hash-key'
import { host, modelView, nodeView } from './harness'

const path = '/v1/messages/count_tokens'
const body = { model: 'claude', messages: [{ role: 'user', content: 'hi' }] }

const description = (name: string, tags: readonly string[] = []): NodeDescription => ({
  name,
  kind: 'llamacpp',
  url: `http://${name}:8080`,
  origin: 'configured',
  tags,
  distance: 0,
})

type At = ModelView['nodes'][number]

const at = (node: string, state: At['state'], ready: 'ready' | 'loading' = 'ready'): At => ({
  node,
  name: `${node}-qwen`,
  online: true,
  state,
  stored: { name: `${node}-qwen` },
  ...(state === 'disk' ? {} : { resident: { name: `${node}-qwen`, state: ready } }),
})

/** A fleet where `claude` stands for `qwen`, with who was asked to count. */
const counting = ({
  nodes,
  view = {},
  ...more
}: { nodes: readonly At[]; view?: Partial<NodeView> } & Parameters<typeof host>[0]) => {
  const asked: Holder[] = []
  const names = nodes.map(({ node }) => node)
  const { post } = host({
    dialects,
    fleet: {
      models: () => [{ ...modelView('qwen'), nodes }],
      chainOf: (name) => (name === 'claude' ? ['qwen'] : [name]),
      nodes: () => names.map((name) => ({ ...nodeView(name), ...view })),
      descriptions: () => names.map((name) => description(name, name === 'b' ? ['gpu'] : [])),
    },
    countTokens: async (holders) => {
      asked.push(...holders)
      const [first] = holders
      return first && { node: first.node.name, tokens: 42 }
    },
    ...more,
  })
  const who = () => asked.map(({ node, model }) => `${node.name}: ${model}`)
  return { post, who }
}

test('a node that has the model in memory counts, by its own name for it, and the answer says so', async () => {
  const { post, who } = counting({ nodes: [at('a', 'disk'), at('b', 'resident'), at('c', 'loading', 'loading')] })

  const response = await post(path, body)

  expect(await response.json()).toEqual({ input_tokens: 42 })
  expect(response.headers.get('x-fleet-tokens')).toBe('counted')
  expect(response.headers.get('x-fleet-node')).toBe('b')
  expect(who()).toEqual(['b: b-qwen'])
})

describe('it is an estimate, and the answer says so,', () => {
  const estimated = async (response: Response): Promise<void> => {
    expect(((await response.json()) as { input_tokens: number }).input_tokens).toBeWithin(1, 20)
    expect(response.headers.get('x-fleet-tokens')).toBe('estimated')
    expect(response.headers.has('x-fleet-node')).toBe(false)
  }

  test('where no node has the model in memory', async () => {
    const { post, who } = counting({ nodes: [at('a', 'disk')] })

    await estimated(await post(path, body))
    expect(who()).toEqual([])
  })

  test.each(['paused', 'suspect', 'offline', 'circuit_open'])('where its node is %s', async (state) => {
    const { post, who } = counting({ nodes: [at('a', 'resident')], view: { state } })

    await estimated(await post(path, body))
    expect(who()).toEqual([])
  })

  test('of a model that nobody has', async () => {
    const { post, who } = counting({ nodes: [at('a', 'resident')] })

    await estimated(await post(path, { ...body, model: 'nobody' }))
    expect(who()).toEqual([])
  })

  test('of a model that the key may not use', async () => {
    const keys = [{ name: 'k', sha256: hashKey('secret'), scopes: ['inference' as const], models: ['llama*'] }]
    const { post, who } = counting({ nodes: [at('a', 'resident')], auth: { mode: 'keys', keys } })

    await estimated(await post(path, body, { 'x-api-key': 'secret' }))
    expect(who()).toEqual([])
  })

  test('with pictures, of which engines count the place only', async () => {
    const { post, who } = counting({ nodes: [at('a', 'resident')] })
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }

    const response = await post(path, { model: 'claude', messages: [{ role: 'user', content: [image] }] })

    expect(response.headers.get('x-fleet-tokens')).toBe('estimated')
    expect(who()).toEqual([])
  })
})

test.each([
  ['a', ['a: a-qwen']],
  ['#gpu', ['b: b-qwen']],
  ['nobody', []],
])('X-Fleet-Node: %s names who may count', async (pin, expected) => {
  const { post, who } = counting({ nodes: [at('a', 'resident'), at('b', 'resident')] })

  expect((await post(path, body, { 'x-fleet-node': pin })).status).toBe(200)
  expect(who()).toEqual(expected)
})
