import { isWideEnough } from '../window'
import type { Filter } from './filter'

/** The client insists on a window that neither the loaded copy has nor a reload could give. */
export const contextWindow: Filter = {
  name: 'context_too_small',
  temporary: false,
  concerns: ({ contextTokens }) => contextTokens !== undefined,
  reject: (candidate, job) => {
    const need = job.contextTokens
    if (need === undefined) return undefined
    const most = candidate.stored.maxContextTokens
    if (most !== undefined && most < need && candidate.node.kind !== 'ollama')
      return { need, have: most, unit: 'tokens' }
    if (candidate.canLoad || isWideEnough(candidate, job)) return undefined
    return { need, have: candidate.resident?.contextTokens ?? 0, unit: 'tokens' }
  },
}
