/** A map that forgets its oldest entries beyond `limit`. */
export const boundedMap = <V>(limit: number) => {
  const entries = new Map<string, V>()
  return {
    get: (key: string): V | undefined => entries.get(key),
    set: (key: string, value: V): void => {
      entries.delete(key)
      entries.set(key, value)
      const oldest = entries.size > limit ? entries.keys().next().value : undefined
      if (oldest !== undefined) entries.delete(oldest)
    },
  }
}
