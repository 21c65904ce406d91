/** The weight that a new value gets in every learned mean. */
export const WEIGHT = 0.2

/** Exponential moving average: the first value is the mean, later ones move it by `WEIGHT` of the distance. */
export const ema = (mean: number | undefined, value: number, weight: number = WEIGHT): number =>
  mean === undefined ? value : mean + weight * (value - mean)
