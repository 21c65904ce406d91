import type { Filter } from './filter'

/** The node says what the model can do, and something that the request needs is not among it. Unknown passes. */
export const capability: Filter = {
  name: 'capability_missing',
  temporary: false,
  reject: ({ stored }, { needs }) => {
    const { capabilities } = stored
    if (capabilities === undefined) return undefined
    return needs.every(
      (need) => capabilities.includes(need === 'chat' ? 'completion' : need) || capabilities.includes(need),
    )
      ? undefined
      : {}
  },
}
