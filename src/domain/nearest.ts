/** Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. */
export const editDistance = (a: string, b: string): number => {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replace = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      const remove = (last[column] ?? 0) + 1
      const insert = (current[column - 1] ?? 0) + 1
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const swap = isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      current.push(Math.min(replace, remove, insert, swap))
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}

/** Short words must match more exactly: almost every three-letter word is near every other. */
const toleratedEdits = (length: number): number => (length < 5 ? 1 : length < 10 ? 2 : 3)

/** The known word that was probably meant, or undefined when none is near enough. Case does not count. */
export const nearest = (word: string, known: Iterable<string>): string | undefined => {
  let best: string | undefined
  let fewest = toleratedEdits(word.length) + 1
  for (const candidate of known) {
    // Every character more or less is an edit.
    if (Math.abs(candidate.length - word.length) >= fewest) continue
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (edits < fewest) {
      best = candidate
      fewest = edits
    }
  }
  return best
}
