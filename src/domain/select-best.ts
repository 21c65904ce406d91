/**
 * The first `count` items in order, then the others as they came: what a sort would give, as far as anybody looks, in
 * one pass. `compare` is below 0 when the first is better; of equals the earlier one is.
 */
export const selectBest = <T>(items: readonly T[], count: number, compare: (a: T, b: T) => number): T[] => {
  const best: T[] = []
  const others: T[] = []
  for (const item of items) {
    if (best.length === count && compare(item, best[count - 1] as T) >= 0) {
      others.push(item)
      continue
    }
    let at = best.length
    while (at > 0 && compare(item, best[at - 1] as T) < 0) at -= 1
    best.splice(at, 0, item)
    if (best.length > count) others.push(best.pop() as T)
  }
  return others.length === 0 ? best : best.concat(others)
}
