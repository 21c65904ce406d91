import type { NodeDescription } from '../domain/node'
import { nodeKindOf } from './fake/kinds'
import type { FakeKind, FakeModel, FakeOptions } from './fake/options'
import { startFake } from './fake/server'

/** One made-up machine: what it holds, how fast it is, and how often it fails. */
export interface DemoNode {
  readonly name: string
  readonly kind: FakeKind
  /** Memory for models in GB. */
  readonly memoryGb: number
  readonly slots: number
  readonly loadGbPerSecond: number
  readonly contention: number
  readonly models: readonly FakeModel[]
  readonly resident: readonly string[]
  /** 0 to 1: how likely a request fails with a 500 before the first byte. */
  readonly failureChance: number
  /** What the engine cannot tell and the configuration would. */
  readonly description: Partial<
    Pick<NodeDescription, 'memoryGb' | 'bandwidthGBps' | 'maxConcurrency' | 'tags' | 'distance'>
  >
}

export interface DemoSpec {
  readonly nodes: readonly DemoNode[]
  /** Simulated ms in one real ms. */
  readonly timeScale: number
}

export interface Demo {
  readonly nodes: NodeDescription[]
  stop(): Promise<void>
}

const CHAT = ['chat', 'completion', 'tools'] as const
const EMBEDDING = ['embedding'] as const

const chatModel = (
  name: string,
  sizeGb: number,
  prefillPerSecond: number,
  decodePerSecond: number,
  more: Partial<FakeModel> = {},
): FakeModel => ({
  name,
  sizeGb,
  contextTokens: 131_072,
  defaultContextTokens: 16_384,
  capabilities: CHAT,
  prefillPerSecond,
  decodePerSecond,
  kvGbPerThousandTokens: 0.02,
  ...more,
})

/** Four unlike machines of one household, at believable speeds. */
export const DEMO: DemoSpec = {
  timeScale: 1,
  nodes: [
    {
      name: 'gaming-pc',
      kind: 'llamacpp-router',
      memoryGb: 24,
      slots: 4,
      loadGbPerSecond: 2.5,
      contention: 0.15,
      failureChance: 0,
      resident: ['qwen3:8b'],
      models: [
        chatModel('qwen3:8b', 5.2, 5200, 105, { capabilities: [...CHAT, 'thinking'] }),
        chatModel('qwen3-coder:30b', 18.6, 3100, 140),
        chatModel('gemma3:12b', 8.1, 3400, 68, { capabilities: [...CHAT, 'vision'] }),
      ],
      description: { memoryGb: 24, bandwidthGBps: 936, tags: ['gpu'] },
    },
    {
      name: 'mac-studio',
      kind: 'ollama',
      memoryGb: 48,
      slots: 2,
      loadGbPerSecond: 4,
      contention: 0.4,
      failureChance: 0,
      resident: ['llama3.3:70b'],
      models: [
        chatModel('llama3.3:70b', 42.5, 75, 8.5, { defaultContextTokens: 8192 }),
        chatModel('qwen3-coder:30b', 18.6, 620, 58),
        chatModel('qwen3:8b', 5.2, 640, 52, { capabilities: [...CHAT, 'thinking'] }),
        chatModel('nomic-embed-text', 0.3, 9000, 1, { capabilities: EMBEDDING, contextTokens: 2048 }),
      ],
      description: { memoryGb: 48, bandwidthGBps: 400, tags: ['quiet'] },
    },
    {
      name: 'old-server',
      kind: 'openai',
      memoryGb: 32,
      slots: 2,
      loadGbPerSecond: 0.5,
      contention: 0.7,
      failureChance: 0.02,
      resident: ['qwen3:8b'],
      models: [chatModel('qwen3:8b', 5.2, 110, 11, { contextTokens: 16_384 })],
      description: { memoryGb: 32, maxConcurrency: 2, tags: ['cpu'], distance: 1 },
    },
    {
      name: 'raspberry-pi',
      kind: 'ollama',
      memoryGb: 6,
      slots: 1,
      loadGbPerSecond: 0.3,
      contention: 1,
      failureChance: 0,
      resident: ['qwen3:0.6b'],
      models: [
        chatModel('qwen3:0.6b', 0.5, 95, 14, { defaultContextTokens: 4096 }),
        chatModel('gemma3:1b', 0.8, 60, 9, { defaultContextTokens: 4096 }),
        chatModel('nomic-embed-text', 0.3, 400, 1, { capabilities: EMBEDDING, contextTokens: 2048 }),
      ],
      description: { memoryGb: 6, bandwidthGBps: 17, tags: ['tiny'] },
    },
  ],
}

/** The answer of every demo model. It says what it is and never repeats the prompt. */
const demoAnswer = (node: string, model: string): string =>
  `Hello from ${node}! This is a simulated answer: no real ${model} runs here. ` +
  'Everything around it was real, though: your request was placed, queued and relayed to this made-up machine, ' +
  'and its record says why it came here.'

const optionsOf = (spec: DemoSpec, node: DemoNode, seed: number): FakeOptions => ({
  kind: node.kind,
  name: node.name,
  models: node.models,
  memoryGb: node.memoryGb,
  slots: node.slots,
  contention: node.contention,
  loadGbPerSecond: node.loadGbPerSecond,
  resident: node.resident,
  seed,
  timeScale: spec.timeScale,
  answer: (_prompt, model) => demoAnswer(node.name, model),
  keepLog: false,
})

const describe = (node: DemoNode, url: string): NodeDescription => ({
  name: node.name,
  kind: nodeKindOf(node.kind),
  url,
  origin: 'demo',
  tags: [],
  distance: 0,
  ...node.description,
})

/** Starts the demo machines on free loopback ports. The same seed makes the same failures. */
export const startDemo = async (seed: number, spec: DemoSpec = DEMO): Promise<Demo> => {
  const fakes = await Promise.all(spec.nodes.map((node, index) => startFake(optionsOf(spec, node, seed + index))))
  const nodes = spec.nodes.map((node, index) => {
    const fake = fakes[index]
    if (!fake) throw new Error(`the demo node ${node.name} did not start`)
    if (node.failureChance > 0) {
      fake.faults.add({ type: 'status', status: 500, message: 'out of memory', chance: node.failureChance })
    }
    return describe(node, fake.url)
  })
  return {
    nodes,
    async stop() {
      await Promise.all(fakes.map((fake) => fake.stop()))
    },
  }
}
