/** A name with `*` in it stands for many. */
export const isGlob = (text: string): boolean => text.includes('*')

/** Whether the pattern covers the whole text; `*` stands for any characters, also for none. Takes |pattern| x |text| steps at most. */
export const matchesGlob = (pattern: string, text: string): boolean => {
  let at = 0
  let next = 0
  /** Behind the last star, and where its part of the text ends so far. */
  let star = -1
  let taken = 0
  while (at < text.length) {
    if (pattern[next] === '*') {
      star = ++next
      taken = at
    } else if (pattern[next] === text[at]) {
      next++
      at++
    } else if (star >= 0) {
      next = star
      at = ++taken
    } else return false
  }
  while (pattern[next] === '*') next++
  return next === pattern.length
}

/** Equal for patterns that cover the same texts, whatever their case. */
export const globKey = (pattern: string): string => pattern.toLowerCase().replace(/\*+/g, '*')

/** Longest part without a star, characters without stars, and the fewer stars the better: compared in this order. */
const weight = (pattern: string): readonly number[] => {
  const parts = pattern.split('*').map(({ length }) => length)
  return [Math.max(...parts), parts.reduce((sum, length) => sum + length, 0), -parts.length]
}

/** Whether the first of two patterns says more. */
export const isMoreSpecific = (a: string, b: string): boolean => {
  const other = weight(b)
  const at = weight(a).findIndex((value, index) => value !== other[index])
  return at >= 0 && (weight(a)[at] ?? 0) > (other[at] ?? 0)
}
