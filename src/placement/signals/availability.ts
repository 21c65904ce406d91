import type { Signal } from './signal'

/** 0 to +10: only nodes that learn their capacity have a score. */
export const availability: Signal = {
  name: 'availability',
  score: ({ availability: score }, _job, _context, { availability: { max } }) => (score ?? 0) * max,
}
