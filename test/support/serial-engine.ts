import type { VirtualClock } from '../../src/sim/virtual-clock'
import type { Running, ScriptedGateway } from './host'

export interface EngineTimes {
  readonly prefillMs: number
  readonly decodeMs: number
}

/** Makes scripted nodes run only so many at once, each on its own; more wait inside, in order, without a word. */
export const runAtOnce = (
  gateway: ScriptedGateway,
  clock: VirtualClock,
  slots: Readonly<Record<string, number>>,
  times: (index: number) => EngineTimes,
) => {
  const engines = new Map<string, { running: number; peak: number; sent: number; waiting: Running[] }>()
  const limits = new Map(Object.entries(slots))

  const engineOf = (node: string) => {
    const engine = engines.get(node) ?? { running: 0, peak: 0, sent: 0, waiting: [] }
    engines.set(node, engine)
    return engine
  }

  const fill = (node: string): void => {
    const engine = engineOf(node)
    while (engine.running < (limits.get(node) ?? Number.POSITIVE_INFINITY)) {
      const running = engine.waiting.shift()
      if (running === undefined) return
      if (running.signal.aborted) continue
      engine.running += 1
      const { prefillMs, decodeMs } = times(engine.sent)
      clock.setTimeout(() => running.signal.aborted || running.start(), prefillMs)
      clock.setTimeout(() => {
        engine.running -= 1
        if (!running.signal.aborted) running.finish({ tokensIn: 100, tokensOut: 50 })
        fill(node)
      }, prefillMs + decodeMs)
    }
  }

  gateway.onForward = (running) => {
    const { name } = running.call.node
    const engine = engineOf(name)
    engine.sent += 1
    engine.waiting.push(running)
    engine.peak = Math.max(engine.peak, engine.running + engine.waiting.length)
    fill(name)
  }

  return {
    /** Sent and not ended, over all time or since `reset`. */
    peak: (node: string) => engineOf(node).peak,
    sent: (node: string) => engineOf(node).sent,
    inside: (node: string) => engineOf(node).running + engineOf(node).waiting.length,
    reset: (node: string) => {
      engineOf(node).peak = 0
    },
    setSlots: (node: string, count: number) => void limits.set(node, count),
  }
}
