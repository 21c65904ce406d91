/** Latest samples of one node:model that a percentile looks at (five-stage pipeline, section 11). */
export const WINDOW = 500

/** The latest values and their 75th percentile: element floor(0.75 n) of the sorted values. */
export interface Window {
  add(value: number): void
  p75(): number | undefined
  /** Enough of it to go on from, see `createWindow`. */
  summary(): WindowSummary
  readonly size: number
}

/** Values at evenly spaced ranks of the sorted window, the least and the largest included; all of them when there are few. */
export interface WindowSummary {
  readonly size: number
  readonly ranks: readonly number[]
}

/** Steps between the ranks of a summary; a multiple of 4, so that the 75th percentile is one of them. */
const STEPS = 32

/** The 75th percentile of the window that was summed up. */
export const p75Of = ({ size, ranks }: WindowSummary): number | undefined =>
  ranks.length === size ? ranks[Math.floor(0.75 * size)] : ranks[0.75 * STEPS]

const rankAt = (step: number, size: number): number => Math.min(size - 1, Math.floor((step / STEPS) * size))

/** As many values as the summary stands for, in between the ranks by straight lines; the percentile is the same. */
const restored = ({ size, ranks }: WindowSummary): number[] => {
  if (ranks.length === size) return [...ranks]
  const values: number[] = []
  for (let step = 0; step < STEPS; step++) {
    const from = rankAt(step, size)
    const to = rankAt(step + 1, size)
    const [low = 0, high = low] = [ranks[step], ranks[step + 1]]
    for (let rank = from; rank < to; rank++) values.push(low + ((high - low) * (rank - from)) / (to - from))
  }
  values.push(ranks[STEPS] ?? 0)
  return values
}

/** Whose age is not known leaves in an order that keeps the spread: every `STRIDE`th of the sorted values, then the next ones. */
const STRIDE = 7

const shuffled = (sorted: readonly number[]): number[] =>
  Array.from({ length: STRIDE }, (_, start) => sorted.filter((_value, at) => at % STRIDE === start)).flat()

/** Of the latest `limit` values; it goes on from `known`. */
export const createWindow = (known?: WindowSummary, limit: number = WINDOW): Window => {
  const sorted: number[] = known === undefined ? [] : restored(known)
  const latest: number[] = shuffled(sorted)
  const at = (value: number): number => {
    let low = 0
    let high = sorted.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sorted[middle] as number) < value) low = middle + 1
      else high = middle
    }
    return low
  }
  return {
    add: (value) => {
      latest.push(value)
      sorted.splice(at(value), 0, value)
      if (latest.length <= limit) return
      const oldest = latest.shift()
      if (oldest !== undefined) sorted.splice(at(oldest), 1)
    },
    p75: () => sorted[Math.floor(0.75 * sorted.length)],
    summary: () => {
      const size = sorted.length
      if (size <= STEPS + 1) return { size, ranks: sorted.slice() }
      // Asked with every answer: filling what has its length is a third of growing it.
      const ranks = new Array<number>(STEPS + 1)
      for (let step = 0; step <= STEPS; step++) ranks[step] = sorted[rankAt(step, size)] as number
      return { size, ranks }
    },
    get size() {
      return latest.length
    },
  }
}
