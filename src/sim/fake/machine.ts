import { createEngine } from './engine'
import { createFaultPlan } from './faults'
import { llamaFace } from './llamacpp'
import { DEFAULT_MAX_MODELS, llamaRouterFace } from './llamacpp-router'
import { DEFAULT_GROUP_SIZE, swapFace } from './llamaswap'
import { studioNewFace, studioOldFace } from './lmstudio'
import { ollamaFace } from './ollama'
import { openAiFace } from './openai'
import type { FakeKind, FakeOptions } from './options'
import { createFakeRandom } from './random'
import type { Face, Machine } from './turn'
import { vllmFace } from './vllm'
import type { Wheel } from './wheel'

const OLLAMA_KEEP_ALIVE_MS = 5 * 60_000
const LOAD_GB_PER_SECOND = 2
const ANSWER_TOKENS = 16

export const FACES: Readonly<Record<FakeKind, Face>> = {
  ollama: ollamaFace,
  lmstudio: studioNewFace,
  'lmstudio-v0': studioOldFace,
  llamaswap: swapFace,
  llamacpp: llamaFace,
  'llamacpp-router': llamaRouterFace,
  vllm: vllmFace,
  openai: openAiFace,
}

const VERSIONS: Readonly<Record<FakeKind, string>> = {
  ollama: '0.33.0',
  lmstudio: '0.4.12',
  'lmstudio-v0': '0.3.31',
  llamaswap: '250',
  llamacpp: 'b9000-fake',
  'llamacpp-router': 'b9000-fake',
  vllm: '0.32.0',
  openai: '1.0.0',
}

/** Models in memory at once where the options do not say. */
const MAX_RESIDENT: Partial<Readonly<Record<FakeKind, number>>> = {
  'llamacpp-router': DEFAULT_MAX_MODELS,
  llamaswap: DEFAULT_GROUP_SIZE,
}

const residentAtStart = ({ kind, models, resident }: FakeOptions): readonly string[] => {
  if (resident) return resident
  if (kind === 'openai' || kind === 'vllm') return models.map((model) => model.name)
  return kind === 'llamacpp' ? models.slice(0, 1).map((model) => model.name) : []
}

/** The engine of the options, with the models in memory that it starts with. */
export const createMachine = (options: FakeOptions, wheel: Wheel): Machine => {
  const { kind, models } = options
  const random = createFakeRandom(options.seed ?? 1)
  const faults = createFaultPlan(random)
  // LM Studio reads a prompt to its end before it looks whether anybody still waits for the answer.
  if (kind === 'lmstudio' || kind === 'lmstudio-v0') faults.add({ type: 'linger' })
  const slots = options.slots ?? (kind === 'ollama' ? 1 : 4)
  const scale = options.timeScale ?? 1
  const engine = createEngine({
    memoryGb: options.memoryGb ?? Number.POSITIVE_INFINITY,
    maxResident: options.maxResident ?? MAX_RESIDENT[kind] ?? Number.POSITIVE_INFINITY,
    slots,
    collapseAbove: options.collapseAbove ?? Number.POSITIVE_INFINITY,
    contention: options.contention ?? 0,
    loadGbPerSecond: options.loadGbPerSecond ?? LOAD_GB_PER_SECOND,
    // Only Ollama lets idle models go by itself.
    keepAliveMs: options.keepAliveMs ?? (kind === 'ollama' ? OLLAMA_KEEP_ALIVE_MS : -1),
    faults,
    wheel,
    random,
  })
  const start = residentAtStart(options)
  for (const model of models) if (start.includes(model.name)) engine.place(model)
  return {
    options,
    models,
    engine,
    faults,
    slots,
    script: { answerTokens: ANSWER_TOKENS, ...options },
    version: options.version ?? VERSIONS[kind],
    wallTime: (at) => Date.now() + (at - wheel.now()) / scale,
  }
}
