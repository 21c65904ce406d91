/** Keeps the values of a label few: the first `max` different ones are themselves, the rest is `other`. */
export interface LabelLimit {
  /** The value to use, counted among the known ones when there is room. */
  admit(value: string): string
  /** The value to use, without making it known: for names that a client made up. */
  known(value: string): string
}

const OTHER = 'other'

/** Values with the same key are one, written as the first of them was. */
export const createLabelLimit = (
  max: () => number,
  keyOf: (value: string) => string = (value) => value,
): LabelLimit => {
  const values = new Map<string, string>()

  return {
    admit: (value) => {
      const key = keyOf(value)
      const known = values.get(key)
      if (known !== undefined) return known
      if (values.size >= max()) return OTHER
      values.set(key, value)
      return value
    },
    known: (value) => values.get(keyOf(value)) ?? OTHER,
  }
}
