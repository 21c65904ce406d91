import { modelKey } from '../../domain/job'
import type { Filter } from './filter'

/** How a request remembers that one model of a node failed it: another one there may do. Node names have no slash. */
export const pairOf = (node: string, model: string): string => `${node}/${modelKey(model)}`

/** This request already failed there. */
export const failedBefore: Filter = {
  name: 'failed_before',
  temporary: false,
  concerns: (_job, { excluded }) => excluded.size > 0,
  reject: ({ node, model }, _job, { excluded }) =>
    excluded.has(node.name) || excluded.has(pairOf(node.name, model)) ? {} : undefined,
}
