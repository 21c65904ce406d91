/** What the lists of both dialects tell about a model that several nodes may have. */
import type { Capability } from '../domain/job'
import type { ModelView } from '../ports/fleet'

type Place = ModelView['nodes'][number]

const largest = (values: readonly (number | undefined)[]): number | undefined => {
  const known = values.filter((value) => value !== undefined)
  return known.length > 0 ? Math.max(...known) : undefined
}

/** Nodes that answer come first; without any, what is known from before still describes the model. */
export const placesOf = ({ nodes }: ModelView): readonly Place[] => {
  const online = nodes.filter((place) => place.online)
  return online.length > 0 ? online : nodes
}

/** What any node with the model can do; undefined when no node told. */
export const capabilitiesOf = (model: ModelView): readonly Capability[] | undefined => {
  const told = placesOf(model).flatMap(({ stored }) => (stored.capabilities ? [stored.capabilities] : []))
  return told.length > 0 ? [...new Set(told.flat())] : undefined
}

/** The largest window that it is loaded with, in tokens. */
export const loadedContext = (model: ModelView): number | undefined =>
  largest(placesOf(model).map(({ resident }) => resident?.contextTokens))

/** The architecture's limit, in tokens. */
export const maxContext = (model: ModelView): number | undefined =>
  largest(placesOf(model).map(({ stored }) => stored.maxContextTokens))
