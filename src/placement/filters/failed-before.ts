import type { Filter } from './filter'

/** This request already failed there. */
export const failedBefore: Filter = {
  name: 'failed_before',
  temporary: false,
  reject: ({ node }, _job, { excluded }) => (excluded.has(node.name) ? {} : undefined),
}
