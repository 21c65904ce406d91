import { sameModel } from '../../domain/job'
import type { NodeDescription, StoredModel } from '../../domain/node'
import type { Filter } from './filter'

/** The configuration lets the node serve the model, by whichever of its names. */
export const mayServe = ({ models }: NodeDescription, { name, localName = name, aliases = [] }: StoredModel): boolean =>
  models === undefined || [name, localName, ...aliases].some((own) => models.some((listed) => sameModel(listed, own)))

/** The configuration lists the models that the node may serve, and this is none of them. */
export const notListed: Filter = {
  name: 'not_listed',
  temporary: false,
  ofCandidate: true,
  reject: ({ node, stored }) => (mayServe(node, stored) ? undefined : {}),
}
