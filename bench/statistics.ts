/** The value below which this share (0 to 1) of the samples lies; NaN of nothing. */
export const quantile = (samples: readonly number[], share: number): number => {
  const sorted = Float64Array.from(samples).sort()
  if (sorted.length === 0) return Number.NaN
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
}

/** Of an even number of samples the mean of the two in the middle. */
export const median = (samples: readonly number[]): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
