import { describe, expect, test } from 'bun:test'
import type { Capability } from '../../../src/domain/job'
import type { ModelView } from '../../../src/ports/fleet'
import { ps, show, tags } from '../../../src/wire/ollama-models'
import { listModels, oneModel } from '../../../src/wire/openai-models'

const now = 1_767_225_600_000

const described: ModelView = {
  name: 'qwen3:8b',
  key: 'qwen3:8b',
  nodes: [
    {
      node: 'box',
      name: 'qwen3:8b',
      online: true,
      state: 'resident',
      stored: {
        name: 'qwen3:8b',
        sizeGb: 5.2,
        digest: 'sha256:0123456789abcdef',
        maxContextTokens: 40_960,
        capabilities: ['chat', 'completion', 'tools', 'thinking'],
        details: {
          format: 'gguf',
          family: 'qwen3',
          families: ['qwen3'],
          parameter_size: '8.2B',
          quantization_level: 'Q4_K_M',
        },
        modifiedAt: '2026-01-01T10:00:00.123456789+02:00',
      },
      resident: {
        name: 'qwen3:8b',
        state: 'ready',
        memoryGb: 6.5,
        vramGb: 6,
        contextTokens: 16_384,
        expiresAt: now + 300_000,
      },
    },
    {
      node: 'pi',
      name: 'qwen3:8b',
      online: true,
      state: 'disk',
      stored: { name: 'qwen3:8b', capabilities: ['vision'] },
    },
  ],
}

/** Nothing but a name, as a bare OpenAI-speaking server tells it. */
const bare: ModelView = {
  name: 'org/Model Ünïcode',
  key: 'org/model ünïcode',
  nodes: [
    {
      node: 'srv',
      name: 'org/Model Ünïcode',
      online: true,
      state: 'resident',
      stored: { name: 'm' },
      resident: { name: 'm', state: 'ready' },
    },
  ],
}

const leaves = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [value]

test('no list holds a null', () => {
  for (const list of [
    tags([described, bare]),
    ps([described, bare], now),
    show(described),
    show(bare),
    listModels([described, bare], now),
  ]) {
    expect(leaves(list)).not.toContain(null)
    expect(leaves(list)).not.toContain(undefined)
  }
})

describe('OpenAI', () => {
  test('a model shows the window in use, the limit and what it can do', () => {
    expect(oneModel(described, now)).toEqual({
      id: 'qwen3:8b',
      object: 'model',
      created: 1_767_225_600,
      owned_by: 'fleet',
      context_length: 16_384,
      max_model_len: 16_384,
      max_context_length: 40_960,
      capabilities: ['chat', 'completion', 'tools', 'thinking', 'vision'],
      architecture: { input_modalities: ['text', 'image'], output_modalities: ['text'] },
    })
  })

  test('what nobody told is left out', () => {
    expect(listModels([bare], now)).toEqual({
      object: 'list',
      data: [{ id: bare.name, object: 'model', created: 1_767_225_600, owned_by: 'fleet' }],
    })
  })
})

describe('Ollama', () => {
  test('tags has every field that strict clients demand', () => {
    expect(tags([described]).models).toEqual([
      {
        name: 'qwen3:8b',
        model: 'qwen3:8b',
        size: 5_200_000_000,
        digest: '0123456789abcdef',
        details: {
          parent_model: '',
          format: 'gguf',
          family: 'qwen3',
          families: ['qwen3'],
          parameter_size: '8.2B',
          quantization_level: 'Q4_K_M',
          context_length: 40_960,
        },
        modified_at: '2026-01-01T10:00:00.123456+02:00',
        capabilities: ['completion', 'tools', 'thinking', 'vision'],
      },
    ])
  })

  test('tags has them also for a model that nobody described', () => {
    const [entry] = tags([bare]).models as Record<string, unknown>[]

    expect(entry).toMatchObject({
      name: bare.name,
      size: 0,
      modified_at: '1970-01-01T00:00:00Z',
      capabilities: ['completion'],
      details: {
        parent_model: '',
        format: 'gguf',
        family: '',
        families: [],
        parameter_size: '',
        quantization_level: '',
      },
    })
    expect(String(entry?.digest)).toMatch(/^[0-9a-f]{64}$/)
  })

  test('ps tells memory, window and an expiry that every parser takes, latest first', () => {
    const models = ps([described, bare], now).models as Record<string, unknown>[]

    expect(models.map(({ name }) => name)).toEqual([bare.name, 'qwen3:8b'])
    expect(models[1]).toMatchObject({
      size: 6_500_000_000,
      size_vram: 6_000_000_000,
      context_length: 16_384,
      expires_at: '2026-01-01T00:05:00.000Z',
    })
  })

  test('ps leaves out nodes that are away', () => {
    const away = { ...described, nodes: described.nodes.map((place) => ({ ...place, online: false })) }

    expect(ps([away], now)).toEqual({ models: [] })
  })

  test('show has the architecture and its window under the names that editors read', () => {
    expect(show(described)).toMatchObject({
      model_info: { 'general.architecture': 'qwen3', 'general.basename': 'qwen3:8b', 'qwen3.context_length': 40_960 },
      parameters: 'num_ctx 16384',
      template: '{{ .Prompt }}',
      capabilities: ['completion', 'tools', 'thinking', 'vision'],
      details: { family: 'qwen3' },
    })
  })

  test('only a model that cannot complete says that it embeds: `ollama run` would send everything to /api/embed', () => {
    const able = (capabilities: Capability[]): ModelView => ({
      ...bare,
      nodes: bare.nodes.map((place) => ({ ...place, stored: { ...place.stored, capabilities } })),
    })

    expect(show(able(['chat', 'completion', 'embedding'])).capabilities).toEqual(['completion'])
    expect(show(able(['embedding'])).capabilities).toEqual(['embedding'])
  })

  test('show has a model_info also for a model that nobody described', () => {
    expect(show(bare).model_info).toEqual({ 'general.architecture': 'unknown', 'general.basename': bare.name })
  })
})
