import { type Static, Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { ResidentModel, StoredModel } from '../domain/node'
import { known, maybe } from './schema'

export const Version = Type.Object({ version: Type.String(), commit: Type.String() })

const Process = Type.Object({ model: Type.String(), state: maybe(Type.String()) })
type Process = Static<typeof Process>

/** `GET /running`: the models that have a process. */
export const Running = Type.Object({ running: Type.Union([Type.Array(Process), Type.Null()]) })
export type Running = Static<typeof Running>

const Entry = Type.Object({
  id: Type.String(),
  context_length: maybe(Type.Number()),
  capabilities: maybe(Type.Object({ reranker: maybe(Type.Boolean()) })),
  architecture: maybe(
    Type.Object({
      input_modalities: maybe(Type.Array(Type.String())),
      output_modalities: maybe(Type.Array(Type.String())),
    }),
  ),
  meta: maybe(
    Type.Object({
      n_ctx: maybe(Type.Number()),
      llamaswap: maybe(
        Type.Object({
          type: maybe(Type.String()),
          aliases: maybe(Type.Array(Type.String())),
          modelID: maybe(Type.String()),
        }),
      ),
    }),
  ),
})
type Entry = Static<typeof Entry>

/** `GET /v1/models`: models, and names that stand for others. */
export const Listed = Type.Object({ data: Type.Union([Type.Array(Entry), Type.Null()]) })
export type Listed = Static<typeof Listed>

/**
 * The models that have a process here, with the aliases that the list tells. Left out is what only stands for other
 * models (`peer`, `selector`, `profile`): nobody can know what a request for such a name starts and stops.
 */
export const storedOf = ({ data }: Listed): readonly StoredModel[] => {
  const entries = data ?? []
  const aliases = Map.groupBy(
    entries.filter((entry) => typeOf(entry) === 'alias'),
    (entry) => entry.meta?.llamaswap?.modelID,
  )
  return entries
    .filter((entry) => typeOf(entry) === 'model')
    .map((entry) => {
      const listed = aliases.get(entry.id)?.map(({ id }) => id) ?? []
      const names = [...new Set([...(entry.meta?.llamaswap?.aliases ?? []), ...listed])]
      return known({
        name: entry.id,
        aliases: names.length > 0 ? names : undefined,
        maxContextTokens: windowOf(entry),
        capabilities: capabilitiesOf(entry),
      })
    })
}

/** Models whose process runs or starts; one that is being stopped is as good as gone. */
export const residentOf = (running: readonly Process[], { data }: Listed): readonly ResidentModel[] => {
  const entries = new Map(data?.map((entry) => [entry.id, entry]))
  return running.flatMap(({ model, state }): ResidentModel[] => {
    if (state !== 'ready' && state !== 'starting') return []
    const entry = entries.get(model)
    return [
      known({
        name: model,
        state: state === 'ready' ? ('ready' as const) : ('loading' as const),
        contextTokens: entry && windowOf(entry),
      }),
    ]
  })
}

/** Versions before 250 do not tell; what they list are models. */
const typeOf = (entry: Entry): string => entry.meta?.llamaswap?.type ?? 'model'

/** The window that the configuration of llama-swap gives for the model, in tokens. */
const windowOf = (entry: Entry): number | undefined =>
  [entry.meta?.n_ctx, entry.context_length].find((tokens) => typeof tokens === 'number' && tokens > 0) ?? undefined

/** What somebody wrote into its configuration; where nothing is said of inputs, nothing is known to lack. */
const capabilitiesOf = ({ architecture, capabilities }: Entry): readonly Capability[] | undefined => {
  const { input_modalities: inputs, output_modalities: outputs } = architecture ?? {}
  const writes = outputs?.includes('text') ?? true
  if (capabilities?.reranker === true || !writes) return []
  if (!inputs) return undefined
  return [
    ...(['chat', 'completion', 'embedding', 'tools', 'thinking', 'insert'] as const),
    ...(inputs.includes('image') ? (['vision'] as const) : []),
    ...(inputs.includes('audio') ? (['audio'] as const) : []),
  ]
}
