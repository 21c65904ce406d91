import type { Filter } from './filter'

/** Its queue takes no more; only an early policy would bind there. */
export const queueFull: Filter = {
  name: 'queue_full',
  temporary: false,
  concerns: (_job, { queueLimit }) => queueLimit !== undefined,
  reject: ({ bound }, _job, { queueLimit }) => (queueLimit !== undefined && bound >= queueLimit ? {} : undefined),
}
