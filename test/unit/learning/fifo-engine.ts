import { createSamples } from '../../../src/learning/service-times'
import { VirtualClock } from '../../../src/sim/virtual-clock'

export interface Times {
  readonly prefillMs: number
  readonly decodeMs: number
}

/** An engine that runs so many at once and lets the rest wait in order, and what the samples see of it. */
export const fifoEngine = (slots: number, times: (index: number) => Times, streams = true) => {
  const clock = new VirtualClock(1_000_000)
  const { parallelism } = createSamples()
  const waiting: string[] = []
  const waits = new Map<string, number>()
  const state = { slots, running: 0, sent: 0, ended: 0, inside: 0, peak: 0 }

  const fill = (): void => {
    while (state.running < state.slots) {
      const request = waiting.shift()
      if (request === undefined) return
      state.running += 1
      const { prefillMs, decodeMs } = times(Number(request))
      clock.setTimeout(() => parallelism.firstByte(request, clock.now()), prefillMs)
      clock.setTimeout(() => {
        state.running -= 1
        state.inside -= 1
        state.ended += 1
        waits.set(request, parallelism.ended(request, clock.now())?.waitedMs ?? Number.NaN)
        fill()
        onEnd()
      }, prefillMs + decodeMs)
    }
  }

  let onEnd = (): void => {}
  const send = (): void => {
    const request = String(state.sent)
    state.sent += 1
    state.inside += 1
    state.peak = Math.max(state.peak, state.inside)
    parallelism.sent({ request, node: 'a', model: 'm', at: clock.now(), streams })
    waiting.push(request)
    fill()
  }
  const view = () => parallelism.of('a', 'm')

  return {
    clock,
    state,
    waits,
    view,
    send,
    /** Keeps as many inside as a router that goes by what was learned, until `count` were sent. */
    keepBusy: async (count: number, assumed: number, tries = false): Promise<void> => {
      const top = (): void => {
        while (state.sent < count) {
          const { slots: known = assumed, mayTry = false } = view() ?? {}
          if (state.inside >= known && tries && mayTry && state.inside === known) parallelism.trying('a', 'm')
          else if (state.inside >= known) return
          send()
        }
      }
      onEnd = top
      top()
      for (let i = 0; i < 200 && state.ended < count; i++) await clock.advance(10_000)
    },
  }
}
