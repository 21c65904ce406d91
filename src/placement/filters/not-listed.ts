import { sameModel } from '../../domain/job'
import type { Filter } from './filter'

/** The configuration lists the models that the node may serve, and this is none of them. */
export const notListed: Filter = {
  name: 'not_listed',
  temporary: false,
  reject: ({ node, model }) =>
    node.models === undefined || node.models.some((listed) => sameModel(listed, model)) ? undefined : {},
}
