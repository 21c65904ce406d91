/** Edits between two words, counting a swap of neighbours as one (Damerau-Levenshtein, optimal string alignment). */
export const editDistance = (a: string, b: string): number => {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1)
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}

/** Up to three names that are close enough to have been meant, nearest first; also those that contain the word. */
export const nearestNames = (asked: string, names: Iterable<string>): readonly string[] => {
  const wanted = asked.toLowerCase()
  const limit = Math.max(2, Math.floor(wanted.length / 3))
  const close: { name: string; distance: number }[] = []
  for (const name of names) {
    const distance = name.includes(wanted) || wanted.includes(name) ? 1 : editDistance(wanted, name.toLowerCase())
    if (distance <= limit) close.push({ name, distance })
  }
  return close
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, 3)
    .map(({ name }) => name)
}
