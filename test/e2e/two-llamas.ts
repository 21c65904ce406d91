/** Two real llama-servers with the same model behind one executable, and how to ask it what happened. */
import { expect } from 'bun:test'
import OpenAI from 'openai'
import type { DecisionRecord } from '../../src/domain/record'
import { type Running, serve, until } from '../support/binary'
import { type Llama, startLlama } from '../support/engine'

export const model = 'smollm2'
/** Two model loads and a start on a slow machine. */
export const startTimeoutMs = 90_000

export interface Rig {
  readonly fleet: Running
  readonly left: Llama
  readonly right: Llama
  readonly openai: OpenAI
  node(name: string): Llama
  /** Both engines' running requests, as the engines themselves count them. */
  processing(): Promise<number>
  last(): Promise<DecisionRecord>
  /** The newest request once it stands at a node without an answer yet. */
  lastRunning(): Promise<{ readonly id: string; readonly node: string }>
  lastSettled(): Promise<DecisionRecord>
  stop(): Promise<void>
}

export const startRig = async (): Promise<Rig> => {
  const [left, right] = await Promise.all([startLlama(), startLlama()])
  const stopEngines = () => Promise.all([left.stop(), right.stop()])
  const fleet = await serve({ config: configFor({ left, right }) }).catch(async (error: unknown) => {
    await stopEngines()
    throw error
  })
  await until(
    () => fleet.json<{ models: { nodes: unknown[] }[] }>('/api/v1/models'),
    ({ models }) => models.some((entry) => entry.nodes.length === 2),
    10_000,
  )
  const last = () => fleet.json<DecisionRecord>('/api/v1/requests/last')
  return {
    fleet,
    left,
    right,
    openai: new OpenAI({ baseURL: `${fleet.url}/v1`, apiKey: 'unused', maxRetries: 0 }),
    node: (name) => (name === 'left' ? left : right),
    processing: async () => (await left.processing()) + (await right.processing()),
    last,
    lastRunning: async () => {
      const record = await until(last, (seen) => currentPhase(seen)?.name === 'prefill', 5_000)
      return { id: record.id, node: currentPhase(record)?.node ?? '' }
    },
    lastSettled: () => until(last, (seen) => seen.outcome !== undefined, 10_000),
    stop: async () => {
      await fleet.end('SIGKILL')
      await stopEngines()
    },
  }
}

/** While an engine computes: `leave` stops it within a second, and the record says why. */
export const expectLeavingStops = async ({ processing, lastSettled }: Rig, leave: () => void): Promise<void> => {
  expect(await processing()).toBe(1)

  leave()

  await until(processing, (running) => running === 0, 1_000)
  expect((await lastSettled()).outcome?.end).toBe('client_disconnected')
}

/** Sum of a metric's samples that carry all these labels. */
export const metric = async (
  fleet: Running,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<number> => {
  const text = await (await fetch(`${fleet.url}/metrics`)).text()
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && wanted.every((pair) => line.includes(pair)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

/** A request that streams for many seconds unless somebody stops it; `ignore_eos` is llama-server's own field. */
export const longStream = (openai: OpenAI, signal?: AbortSignal) =>
  openai.chat.completions.create(
    {
      model,
      messages: [{ role: 'user', content: 'Count in words, one number after the other.' }],
      stream: true,
      max_tokens: 1500,
      ...{ ignore_eos: true },
    },
    signal ? { signal } : {},
  )

/** Where the request stands, or stood last; nowhere in the error that is answered before there was any request. */
export const currentPhase = ({ phases }: Partial<DecisionRecord>) => phases?.at(-1)

const configFor = (nodes: Readonly<Record<string, Llama>>): string =>
  [
    '[discovery]',
    'local = false',
    ...Object.entries(nodes).flatMap(([name, llama]) => [
      '[[nodes]]',
      `name = "${name}"`,
      'kind = "llamacpp"',
      `url = "${llama.url}"`,
    ]),
  ].join('\n')
