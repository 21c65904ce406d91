import { RouterError } from '../domain/errors'
import { sameModel } from '../domain/job'
import type { ModelView } from '../ports/fleet'

/** The models that some node could run now: what a client may choose from. */
export const servable = (models: readonly ModelView[]): readonly ModelView[] =>
  models.filter(({ nodes }) => nodes.some(({ online }) => online))

/** Some node has it in memory, or is bringing it there. */
export const isInMemory = ({ nodes }: ModelView): boolean => nodes.some(({ state }) => state !== 'disk')

/** The model under the name that a client wrote, or that one of its nodes uses; throws `model_not_found`. */
export const findModel = (models: readonly ModelView[], name: string): ModelView => {
  const found =
    models.find((model) => sameModel(model.name, name)) ??
    models.find((model) => model.nodes.some((node) => sameModel(node.name, name)))
  if (found) return found
  throw new RouterError('model_not_found', `No node has the model "${name}".`, {
    param: 'model',
    hint: 'GET /v1/models lists the models.',
  })
}
