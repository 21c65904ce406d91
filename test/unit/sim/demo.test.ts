import { expect, test } from 'bun:test'
import { DEMO, type DemoSpec, startDemo } from '../../../src/sim/demo'
import { askChat, chatText, getJson, readJson } from '../../support/fakes'

const spec: DemoSpec = { ...DEMO, timeScale: 200 }

test('four unlike machines answer as what they are', async () => {
  const demo = await startDemo(1, spec)
  try {
    expect(demo.nodes.map((node) => [node.name, node.kind, node.origin])).toEqual([
      ['gaming-pc', 'llamacpp', 'demo'],
      ['mac-studio', 'ollama', 'demo'],
      ['old-server', 'openai', 'demo'],
      ['raspberry-pi', 'ollama', 'demo'],
    ])
    const [gaming, mac, old, pi] = demo.nodes
    expect((await getJson(`${gaming!.url}/props`)).json.role).toBe('router')
    expect((await getJson(`${mac!.url}/api/ps`)).json.models[0].name).toBe('llama3.3:70b')
    expect((await getJson(`${old!.url}/v1/models`)).json.data).toHaveLength(1)
    expect((await getJson(`${pi!.url}/api/tags`)).json.models).toHaveLength(3)
  } finally {
    await demo.stop()
  }
})

test('an answer says that it is simulated, by which machine, and nothing of the prompt', async () => {
  const demo = await startDemo(1, spec)
  try {
    const gaming = demo.nodes.find((node) => node.name === 'gaming-pc')!
    const text = chatText(await (await askChat(gaming, { model: 'gemma3:12b', prompt: 'my secret' })).text())

    expect(text).toContain('Hello from gaming-pc! This is a simulated answer')
    expect(text).not.toContain('secret')
  } finally {
    await demo.stop()
  }
})

test('the same seed makes the same failures', async () => {
  const failing: DemoSpec = {
    ...spec,
    nodes: spec.nodes.filter((node) => node.kind === 'openai').map((node) => ({ ...node, failureChance: 0.4 })),
  }
  const statuses = async (seed: number): Promise<number[]> => {
    const demo = await startDemo(seed, failing)
    const all: number[] = []
    for (let index = 0; index < 12; index += 1)
      all.push((await askChat(demo.nodes[0]!, { model: 'qwen3:8b', stream: false })).status)
    await demo.stop()
    return all
  }
  const first = await statuses(3)

  expect(new Set(first)).toEqual(new Set([200, 500]))
  expect(await statuses(3)).toEqual(first)
})

test('a thinking model thinks before it answers, and the embedding model embeds', async () => {
  const demo = await startDemo(1, spec)
  try {
    const mac = demo.nodes.find((node) => node.name === 'mac-studio')!
    const answer = await readJson(askChat(mac, { model: 'qwen3:8b', stream: false }))
    expect(answer.choices[0].message.reasoning).toBeString()
    const embedding = await fetch(`${mac.url}/api/embed`, {
      method: 'POST',
      body: '{"model":"nomic-embed-text","input":"a"}',
    })
    expect((await readJson(embedding)).embeddings).toHaveLength(1)
  } finally {
    await demo.stop()
  }
})
