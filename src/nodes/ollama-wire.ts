import { type Static, Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { ResidentModel, StoredModel } from '../domain/node'
import { known, maybe, toGb } from './schema'

export const Version = Type.Object({ version: Type.String() })

export const Tag = Type.Object({
  name: Type.String(),
  size: maybe(Type.Number()),
  digest: maybe(Type.String()),
  modified_at: maybe(Type.String()),
  details: maybe(Type.Record(Type.String(), Type.Unknown())),
  capabilities: maybe(Type.Array(Type.String())),
  remote_host: maybe(Type.String()),
})
export type Tag = Static<typeof Tag>

export const Tags = Type.Object({ models: Type.Union([Type.Array(Tag), Type.Null()]) })

export const Process = Type.Object({
  name: Type.String(),
  size: maybe(Type.Number()),
  size_vram: maybe(Type.Number()),
  context_length: maybe(Type.Number()),
  expires_at: maybe(Type.String()),
  remote_host: maybe(Type.String()),
})
export type Process = Static<typeof Process>

export const Running = Type.Object({ models: Type.Union([Type.Array(Process), Type.Null()]) })

export const Show = Type.Object({
  capabilities: maybe(Type.Array(Type.String())),
  model_info: maybe(Type.Record(Type.String(), Type.Unknown())),
})
export type Show = Static<typeof Show>

/** What `/api/show` adds to a tag. */
export interface Traits {
  readonly capabilities?: readonly Capability[]
  readonly maxContextTokens?: number
}

/** Models with a remote host run in a cloud: they are no models of this node. */
export const isLocal = ({ remote_host }: { remote_host?: string | null }): boolean => !remote_host

const SAME_NAME: readonly Capability[] = ['embedding', 'vision', 'tools', 'thinking', 'insert', 'audio']

const toCapabilities = (words: readonly string[] | null | undefined): readonly Capability[] | undefined =>
  words?.flatMap((word): readonly Capability[] =>
    word === 'completion' ? ['chat', 'completion'] : SAME_NAME.filter((capability) => capability === word),
  )

export const traitsOfShow = ({ capabilities, model_info }: Show): Traits => {
  const architecture = model_info?.['general.architecture']
  return known({
    capabilities: toCapabilities(capabilities),
    maxContextTokens: positive(model_info?.[`${architecture}.context_length`]),
  })
}

/** From 0.30 on the tags hold both; before that only `/api/show` has them. */
export const traitsOfTag = ({ capabilities, details }: Tag): Traits | undefined =>
  capabilities
    ? known({ capabilities: toCapabilities(capabilities), maxContextTokens: positive(details?.context_length) })
    : undefined

export const toStored = (tag: Tag, traits: Traits): StoredModel =>
  known({
    name: tag.name,
    sizeGb: tag.size ? toGb(tag.size) : undefined,
    digest: tag.digest,
    details: tag.details,
    modifiedAt: tag.modified_at,
    ...traits,
  })

/**
 * An entry of `/api/ps`. Those whose expiry is past stay, with the expiry: Ollama lists a model that is stuck on its
 * way out for ever, and whoever decides must see that it is not to be trusted.
 */
export const toResident = (process: Process): ResidentModel =>
  known({
    name: process.name,
    state: 'ready' as const,
    memoryGb: process.size ? toGb(process.size) : undefined,
    vramGb: typeof process.size_vram === 'number' ? toGb(process.size_vram) : undefined,
    contextTokens: positive(process.context_length),
    expiresAt: positive(Date.parse(process.expires_at ?? '')),
  })

/** Go writes "no time" as the year 1, which is negative here. */
const positive = (value: unknown): number | undefined => (typeof value === 'number' && value > 0 ? value : undefined)
