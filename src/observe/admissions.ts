import type { Admission } from '../domain/node'
import type { AdmissionStore } from '../ports/admissions'
import type { Sink } from './journal'

/** A found node that is paused may be away for so long, in ms, before that is forgotten. */
const KEPT_MS = 90 * 86_400_000

/** What an operator said of the nodes. */
export interface Admissions extends Sink {
  /** How the node is to begin. */
  of(node: string): Admission
}

/**
 * Keeps pauses and drains until they are undone or their node is gone: removed, or not in the configuration any more that had
 * it. Hears of each as a fact, those that are restored too.
 */
export const createAdmissions = (
  store: AdmissionStore,
  isConfigured: (node: string) => boolean,
  now: () => number,
): Admissions => {
  const kept = new Map<string, Admission>()
  const forget = (node: string): void => {
    kept.delete(node)
    store.forget(node)
  }

  for (const { node, admission, isConfigured: wasConfigured, at } of store.load()) {
    const isGone = !isConfigured(node) && (wasConfigured || now() - at > KEPT_MS)
    if (isGone) store.forget(node)
    else kept.set(node, admission)
  }

  return {
    name: 'admissions',
    of: (node) => kept.get(node) ?? 'open',
    hear: (fact) => {
      if (fact.type === 'node.removed') {
        if (kept.has(fact.node)) forget(fact.node)
        return
      }
      if (fact.type !== 'node.admission') return
      const { node, admission, at } = fact
      if (admission === 'open') {
        forget(node)
        return
      }
      kept.set(node, admission)
      store.save({ node, admission, isConfigured: isConfigured(node), at })
    },
  }
}
