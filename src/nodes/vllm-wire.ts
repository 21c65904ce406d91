import { type Static, Type } from '@sinclair/typebox'
import type { ResidentModel, StoredModel } from '../domain/node'
import { known, maybe } from './schema'

export const Version = Type.Object({ version: Type.String() })

const Entry = Type.Object({
  id: Type.String(),
  root: maybe(Type.String()),
  parent: maybe(Type.String()),
  max_model_len: maybe(Type.Number()),
})
type Entry = Static<typeof Entry>

/** `GET /v1/models`: the names that the model is served under, and its LoRA adapters, which have a parent. */
export const Models = Type.Object({ data: Type.Array(Entry) })

/** What the engine does now; absent where its metrics do not tell. */
export interface Occupancy {
  /** Requests that it computes or that wait inside it, ours and others'. */
  readonly running?: number
  /** Share of its KV cache in use, 0 to 1. */
  readonly kvUsage?: number
}

const SAMPLE =
  /^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc|gpu_cache_usage_perc)(?:\{[^\n]*\})? ([0-9.eE+-]+)/gm

/** From the text of `/metrics`. Engines behind one server (data parallel) are summed; of their caches the fullest counts. */
export const occupancyOf = (metrics: string): Occupancy => {
  let running: number | undefined
  let kvUsage: number | undefined
  for (const [, name, text] of metrics.matchAll(SAMPLE)) {
    const value = Number(text)
    if (!Number.isFinite(value)) continue
    if (name?.startsWith('num_')) running = (running ?? 0) + value
    else kvUsage = Math.max(kvUsage ?? 0, value)
  }
  return known({ running, kvUsage })
}

/**
 * The model under its first name, with the others as aliases; so is the repository that it came from, unless that is a
 * folder of the machine: a configuration may well call the model by that. Adapters are models of their own.
 */
export const storedOf = (entries: readonly Entry[]): readonly StoredModel[] => {
  const served = entries.filter(isServed)
  return entries
    .filter((entry) => !isServed(entry) || entry === served[0])
    .map((entry) => {
      const aliases = entry === served[0] ? aliasesOf(served) : []
      return known({
        name: entry.id,
        aliases: aliases.length > 0 ? aliases : undefined,
        maxContextTokens: windowOf(entry, entries),
        details: entry.parent ? { parent_model: entry.parent } : undefined,
      })
    })
}

/** Everything that is listed is in memory. Adapters share the engine's cache; its requests are counted once, at the model. */
export const residentOf = (entries: readonly Entry[], { running, kvUsage }: Occupancy): readonly ResidentModel[] => {
  const served = entries.find(isServed)
  return entries
    .filter((entry) => !isServed(entry) || entry === served)
    .map((entry) =>
      known({
        name: entry.id,
        state: 'ready' as const,
        contextTokens: windowOf(entry, entries),
        running: entry === served ? running : undefined,
        kvUsage,
      }),
    )
}

const isServed = ({ parent }: Entry): boolean => !parent

const aliasesOf = ([first, ...others]: readonly Entry[]): readonly string[] => {
  const names = new Set(others.map(({ id }) => id))
  if (first?.root && !/^[./\\~]|^[a-z]:/i.test(first.root)) names.add(first.root)
  names.delete(first?.id ?? '')
  return [...names]
}

/** In tokens; an adapter has that of its model. */
const windowOf = (entry: Entry, entries: readonly Entry[]): number | undefined =>
  [entry, entries.find(({ id }) => id === entry.parent)]
    .map((one) => one?.max_model_len)
    .find((tokens) => typeof tokens === 'number' && tokens > 0) ?? undefined
