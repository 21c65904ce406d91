import { RouterError } from '../domain/errors'
import { sameModel } from '../domain/job'
import { mayRun } from '../domain/model-globs'
import type { NodeDescription } from '../domain/node'
import { isMeant } from '../domain/pin'
import type { Fleet, ModelView } from '../ports/fleet'
import type { Caller } from './auth'

/** The models that some node could run now: what a client may choose from. */
export const servable = (models: readonly ModelView[]): readonly ModelView[] => models.filter(isServable)

const isServable = ({ nodes }: ModelView): boolean => nodes.some(({ online }) => online)

/** Some node has it in memory, or is bringing it there. */
const isInMemory = ({ nodes }: ModelView): boolean => nodes.some(({ state }) => state !== 'disk')

/** The nodes among those that a request is meant for that have the model in memory, or are bringing it there. */
export const holdersOf = (
  { nodes }: ModelView,
  descriptions: readonly NodeDescription[],
  pin: string | undefined,
): readonly NodeDescription[] => {
  const holding = new Set(nodes.flatMap(({ node, state }) => (state === 'disk' ? [] : [node])))
  return descriptions.filter((node) => holding.has(node.name) && isMeant(node, pin))
}

/** The fleet's models as far as a caller's key may use them. */
export const modelsFor = (fleet: Pick<Fleet, 'models' | 'chainOf'>, caller: Caller | undefined) => {
  const globs = caller?.models
  if (globs === undefined) return fleet
  return {
    models: () => fleet.models().filter(({ name, aliasOf = [] }) => mayRun(globs, [name], aliasOf)),
    chainOf: (asked: string) => fleet.chainOf(asked),
  }
}

/** The model or alias of that name, or what the name stands for, under the name; throws `model_not_found`. */
export const findModel = (fleet: Pick<Fleet, 'models' | 'chainOf'>, name: string): ModelView => {
  const models = fleet.models()
  const own = models.find((model) => sameModel(model.name, name))
  if (own) return own
  const chain = fleet.chainOf(name)
  const known = chain.flatMap((model) => models.find((one) => answersTo(one, model)) ?? [])
  const found = known.find(isInMemory) ?? known.find(isServable) ?? known[0]
  if (found) return chain.some((model) => sameModel(model, name)) ? found : { ...found, name, aliasOf: chain }
  throw new RouterError('model_not_found', `No node has the model "${name}".`, {
    param: 'model',
    hint: 'GET /v1/models lists the models.',
  })
}

/** By its name, or by a further one that a node serves it under. */
const answersTo = ({ name, nodes }: ModelView, asked: string): boolean =>
  sameModel(name, asked) || nodes.some(({ stored }) => stored.aliases?.some((alias) => sameModel(alias, asked)))
