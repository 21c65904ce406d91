import { type Static, Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { ResidentModel, StoredModel } from '../domain/node'
import { known, maybe, toGb } from './schema'

const Instance = Type.Object({
  id: Type.String(),
  config: maybe(Type.Object({ context_length: maybe(Type.Number()), parallel: maybe(Type.Number()) })),
})
export type Instance = Static<typeof Instance>

const Entry = Type.Object({
  key: Type.String(),
  type: maybe(Type.String()),
  architecture: maybe(Type.String()),
  format: maybe(Type.String()),
  params_string: maybe(Type.String()),
  quantization: maybe(Type.Object({ name: maybe(Type.String()) })),
  size_bytes: maybe(Type.Number()),
  max_context_length: maybe(Type.Number()),
  loaded_instances: maybe(Type.Array(Instance)),
  capabilities: maybe(Type.Object({ vision: maybe(Type.Boolean()), reasoning: Type.Optional(Type.Unknown()) })),
})
export type Entry = Static<typeof Entry>

/** `GET /api/v1/models`, from 0.4.0 on. */
export const ModelsV1 = Type.Object({ models: Type.Array(Entry) })

const OldEntry = Type.Object({
  id: Type.String(),
  type: maybe(Type.String()),
  arch: maybe(Type.String()),
  compatibility_type: maybe(Type.String()),
  quantization: maybe(Type.String()),
  state: maybe(Type.String()),
  max_context_length: maybe(Type.Number()),
  loaded_context_length: maybe(Type.Number()),
})
export type OldEntry = Static<typeof OldEntry>

/** `GET /api/v0/models`, from 0.3.6 on. */
export const ModelsV0 = Type.Object({ data: Type.Array(OldEntry) })

/** `POST /api/v1/models/load`: answers once the model is in memory. */
export const LoadedV1 = Type.Object({ instance_id: Type.String() })
export const UnloadedV1 = Type.Object({ instance_id: Type.String() })

export const instancesOf = ({ loaded_instances }: Entry): readonly Instance[] => loaded_instances ?? []

/** The copy that a request by the model's key reaches: the one of that name, else the first. */
export const mainInstance = (entry: Entry): Instance | undefined => {
  const instances = instancesOf(entry)
  return instances.find(({ id }) => id === entry.key) ?? instances[0]
}

/** What requests must call the model: a copy loaded under a name of its own answers to that, not to the key. */
const nameOf = (entry: Entry): string => mainInstance(entry)?.id ?? entry.key

/** Every name that means this model. */
export const namesOf = (entry: Entry): readonly string[] => [entry.key, ...instancesOf(entry).map(({ id }) => id)]

export const toStored = (entry: Entry): StoredModel => {
  const name = nameOf(entry)
  const aliases = [...new Set(namesOf(entry))].filter((other) => other !== name)
  const details = known({
    format: entry.format,
    family: entry.architecture,
    parameter_size: entry.params_string,
    quantization_level: entry.quantization?.name,
  })
  return known({
    name,
    aliases: aliases.length > 0 ? aliases : undefined,
    sizeGb: entry.size_bytes ? toGb(entry.size_bytes) : undefined,
    maxContextTokens: positive(entry.max_context_length),
    capabilities: capabilitiesOf(entry),
    details: Object.keys(details).length > 0 ? details : undefined,
  })
}

export const toResident = (entry: Entry): readonly ResidentModel[] => {
  const instance = mainInstance(entry)
  if (!instance) return []
  const { context_length, parallel } = instance.config ?? {}
  return [
    known({
      name: instance.id,
      state: 'ready' as const,
      contextTokens: positive(context_length),
      slots: positive(parallel),
    }),
  ]
}

/**
 * What the model is not known to lack. Tools stay whatever `trained_for_tool_use` says: LM Studio gives models without
 * training for it a format of its own.
 */
const capabilitiesOf = ({ type, capabilities }: Entry): readonly Capability[] | undefined => {
  if (type === 'embedding') return ['embedding']
  if (!capabilities) return undefined
  const thinks = !('reasoning' in capabilities) || Boolean(capabilities.reasoning)
  return [
    ...(['chat', 'completion', 'tools'] as const),
    ...(capabilities.vision ? (['vision'] as const) : []),
    ...(thinks ? (['thinking'] as const) : []),
  ]
}

export const isLoadedV0 = ({ state }: OldEntry): boolean => state === 'loaded'

export const toStoredV0 = (entry: OldEntry): StoredModel => {
  const details = known({
    format: entry.compatibility_type,
    family: entry.arch,
    quantization_level: entry.quantization,
  })
  return known({
    name: entry.id,
    maxContextTokens: positive(entry.max_context_length),
    capabilities: OLD_CAPABILITIES[entry.type ?? ''],
    details: Object.keys(details).length > 0 ? details : undefined,
  })
}

/** The type says what a model is; whether it thinks is nowhere, so no model is said not to. */
const OLD_CAPABILITIES: Readonly<Record<string, readonly Capability[]>> = {
  llm: ['chat', 'completion', 'tools', 'thinking'],
  vlm: ['chat', 'completion', 'tools', 'thinking', 'vision'],
  embeddings: ['embedding'],
}

export const toResidentV0 = (entry: OldEntry): ResidentModel =>
  known({ name: entry.id, state: 'ready' as const, contextTokens: positive(entry.loaded_context_length) })

const positive = (value: number | null | undefined): number | undefined => (value && value > 0 ? value : undefined)
