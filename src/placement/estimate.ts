/** A slot as it is expected to behave. Times in ms from now. */
export interface SlotForecast {
  /** Until it takes the next request, loading included. */
  readonly freeInMs: number
  /** Mean service time on it. */
  readonly serviceMs: number
}

export interface Forecast {
  readonly waitMs: number
  readonly serviceMs: number
}

/** Requests ahead that are put on slots one by one; the rest is reckoned by the slots' common rate. */
const STEPS = 500

const firstOf = (slots: readonly SlotForecast[], time: (slot: SlotForecast) => number): number => {
  let best = 0
  for (let at = 1; at < slots.length; at++) {
    if (time(slots[at] as SlotForecast) < time(slots[best] as SlotForecast)) best = at
  }
  return best
}

/** The slots once `count` further requests have been put on whichever is free first. */
export const withQueued = (slots: readonly SlotForecast[], count: number): readonly SlotForecast[] => {
  const next = [...slots]
  if (next.length === 0) return next
  for (let step = 0; step < Math.min(count, STEPS); step++) {
    const at = firstOf(next, ({ freeInMs }) => freeInMs)
    const slot = next[at] as SlotForecast
    next[at] = { ...slot, freeInMs: slot.freeInMs + slot.serviceMs }
  }
  const perMs = next.reduce((sum, { serviceMs }) => sum + 1 / Math.max(1, serviceMs), 0)
  const restMs = Math.max(0, count - STEPS) / perMs
  return restMs === 0 ? next : next.map((slot) => ({ ...slot, freeInMs: slot.freeInMs + restMs }))
}

/** When a request with so many before it should begin, and how long it should take, on the slot that ends it first. */
export const forecast = (slots: readonly SlotForecast[], ahead: number): Forecast | undefined => {
  if (slots.length === 0) return undefined
  const queued = withQueued(slots, ahead)
  const { freeInMs, serviceMs } = queued[firstOf(queued, (slot) => slot.freeInMs + slot.serviceMs)] as SlotForecast
  return { waitMs: freeInMs, serviceMs }
}
