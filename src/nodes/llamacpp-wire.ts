import { type Static, Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { StoredModel } from '../domain/node'
import { known, maybe, toGb } from './schema'

/** `GET /props`, of a single server, of a router, or of one of a router's children. Nothing in it is always there. */
export const Props = Type.Object({
  build_info: maybe(Type.String()),
  role: maybe(Type.String()),
  total_slots: maybe(Type.Number()),
  max_instances: maybe(Type.Number()),
  is_sleeping: maybe(Type.Boolean()),
  endpoint_slots: maybe(Type.Boolean()),
  modalities: maybe(Type.Record(Type.String(), Type.Unknown())),
  chat_template_caps: maybe(Type.Record(Type.String(), Type.Unknown())),
  default_generation_settings: maybe(Type.Object({ n_ctx: maybe(Type.Number()) })),
})
export type Props = Static<typeof Props>

const Meta = Type.Object({
  n_ctx: maybe(Type.Number()),
  n_ctx_train: maybe(Type.Number()),
  n_params: maybe(Type.Number()),
  size: maybe(Type.Number()),
  ftype: maybe(Type.String()),
})

const Entry = Type.Object({
  id: Type.String(),
  aliases: maybe(Type.Array(Type.String())),
  meta: maybe(Meta),
  architecture: maybe(Type.Object({ input_modalities: maybe(Type.Array(Type.String())) })),
})
export type Entry = Static<typeof Entry>

/** `GET /v1/models` of a single server. */
export const Models = Type.Object({ data: Type.Array(Entry) })

const Status = Type.Object({
  value: Type.String(),
  failed: maybe(Type.Boolean()),
  exit_code: maybe(Type.Number()),
})
export const Child = Type.Composite([Entry, Type.Object({ status: Status })])
export type Child = Static<typeof Child>

/** `GET /models` of a router: every model it could start, with its status. */
export const Children = Type.Object({ data: Type.Array(Child) })

export const Slots = Type.Array(Type.Object({ is_processing: maybe(Type.Boolean()) }))

export const isRouter = (props: Props): boolean => props.role === 'router'

/** The window of one slot, in tokens. */
export const contextOf = (entry: Entry, props: Props | undefined): number | undefined =>
  positive(props?.default_generation_settings?.n_ctx) ?? positive(entry.meta?.n_ctx)

export const slotsOf = (props: Props | undefined): number | undefined => positive(props?.total_slots)

export const toStored = (entry: Entry, props: Props | undefined): StoredModel => {
  const aliases = aliasesOf(entry)
  const details = known({ quantization_level: entry.meta?.ftype, parameter_count: entry.meta?.n_params })
  return known({
    name: entry.id,
    aliases: aliases.length > 0 ? aliases : undefined,
    sizeGb: entry.meta?.size ? toGb(entry.meta.size) : undefined,
    maxContextTokens: positive(entry.meta?.n_ctx_train),
    capabilities: capabilitiesOf(entry, props),
    details: Object.keys(details).length > 0 ? details : undefined,
  })
}

/** The server lists its own id among the aliases, and a path where it was started with nothing but `--model`. */
const aliasesOf = ({ id, aliases }: Entry): string[] => {
  const names = new Set([...(aliases ?? []), ...fileNames(id)])
  names.delete(id)
  return [...names]
}

/** Of any file system, with its ending. */
const maxFileName = 256

/** `/models/qwen3-8b-q4.gguf` is also asked for as `qwen3-8b-q4`; a split file without its `-00001-of-00003`. */
const fileNames = (id: string): string[] => {
  const file = /([^/\\]+)\.gguf$/i.exec(id.slice(-maxFileName))?.[1]
  return file ? [file.replace(/-\d{5}-of-\d{5}$/, '')] : []
}

/**
 * What the server is not known to lack. Whether it embeds, thinks or fills in is nowhere in its answers (a server
 * started with `--embeddings` looks like any other), so these stay; an unknown must not eliminate.
 */
const capabilitiesOf = (entry: Entry, props: Props | undefined): readonly Capability[] | undefined => {
  const inputs = entry.architecture?.input_modalities ?? undefined
  const modalities = props?.modalities ?? undefined
  const caps = props?.chat_template_caps ?? undefined
  if (!modalities && !caps && !inputs) return undefined

  const takes = (modality: string, input: string): boolean =>
    modalities ? modalities[modality] === true : (inputs?.includes(input) ?? true)
  const tools = caps ? caps.supports_tools === true || caps.supports_tool_calls === true : true
  return [
    ...(['chat', 'completion', 'embedding', 'insert', 'thinking'] as const),
    ...(tools ? (['tools'] as const) : []),
    ...(takes('vision', 'image') ? (['vision'] as const) : []),
    ...(takes('audio', 'audio') ? (['audio'] as const) : []),
  ]
}

const positive = (value: number | null | undefined): number | undefined => (value && value > 0 ? value : undefined)
