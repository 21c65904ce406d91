/** Latest samples of one node:model that a percentile looks at (five-stage pipeline, section 11). */
export const WINDOW = 500

/** The latest `WINDOW` values and their 75th percentile: element floor(0.75 n) of the sorted values. */
export interface Window {
  add(value: number): void
  p75(): number | undefined
  readonly size: number
}

export const createWindow = (): Window => {
  const latest: number[] = []
  const sorted: number[] = []
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
      if (latest.length <= WINDOW) return
      const oldest = latest.shift()
      if (oldest !== undefined) sorted.splice(at(oldest), 1)
    },
    p75: () => sorted[Math.floor(0.75 * sorted.length)],
    get size() {
      return latest.length
    },
  }
}
