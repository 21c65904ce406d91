/** How often a child may be restarted before it is left down. */
export interface Intensity {
  readonly restarts: number
  readonly withinMs: number
}

export const NODE_INTENSITY: Intensity = { restarts: 5, withinMs: 60_000 }
/** One more takes the node along. */
export const RUNTIME_INTENSITY: Intensity = { restarts: 5, withinMs: 60_000 }

/** The restarts that still count, with this one; undefined when it is one too many. */
export const restartsAfter = (
  earlier: readonly number[],
  now: number,
  { restarts, withinMs }: Intensity,
): readonly number[] | undefined => {
  const counted = [...earlier.filter((at) => now - at < withinMs), now]
  return counted.length > restarts ? undefined : counted
}
