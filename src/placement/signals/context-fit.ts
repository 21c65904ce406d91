import type { Signal } from './signal'

/** Share of the most points by how often the prompt fits into the loaded window. */
const TIERS: readonly (readonly [atLeast: number, share: number])[] = [
  [8, 1],
  [3, 0.8],
  [1.5, 0.5],
  [1, 0.2],
]

/** -15 to +15: rewards a loaded window that holds the prompt with ease; 0 unless loaded with a known window. */
export const contextFit: Signal = {
  name: 'context_fit',
  score({ resident }, { promptTokens }, _context, { contextFit: { max } }) {
    const window = resident?.state === 'ready' ? resident.contextTokens : undefined
    if (window === undefined || promptTokens.value <= 0) return 0
    const ratio = window / promptTokens.value
    return (TIERS.find(([atLeast]) => ratio >= atLeast)?.[1] ?? -1) * max
  },
}
