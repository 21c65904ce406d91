import { type Started, startFleet } from '../../actors'
import type { Config } from '../../src/domain/config'
import type { Job } from '../../src/domain/job'
import type { Clock } from '../../src/ports/clock'
import type { NodeGateway } from '../../src/ports/node-gateway'
import { systemClock } from '../../src/system'
import { noSamples, resident, testConfig, testJob, testNode } from './host'

const reply = { status: 200, headers: {}, body: new Uint8Array() }

/** The whole core on a real clock over nodes that answer before they are asked twice: no IO, no records. */
export const instantFleet = async (
  setup: {
    readonly nodes?: number
    readonly slots?: number
    readonly clock?: Clock
    readonly change?: Parameters<typeof testConfig>[0]
    /** How an answer comes: at once, in a later turn of the event loop, or when the test says so. */
    readonly answer?: (finish: () => void) => void
  } = {},
) => {
  const { nodes = 4, slots = 64, clock = systemClock, change = {}, answer = (finish) => queueMicrotask(finish) } = setup
  const gateway: NodeGateway = {
    report: async () => resident('m', slots),
    load: async () => {},
    unload: async () => {},
    cut: () => {},
    forward: (_call, listener) => {
      answer(() => {
        listener.started(reply, 1)
        listener.finished({ end: 'completed', status: 200, bytes: 1, durationMs: 2 })
      })
      return { lastByteAt: clock.now(), bytes: 1, clientStalledSince: 0 }
    },
  }
  const config: Config = testConfig({
    ...change,
    nodes: Array.from({ length: nodes }, (_, i) => testNode(`n${i}`)) as never,
  })
  const fleet: Started = startFleet(
    config,
    {
      gateway,
      clock,
      journal: {
        record: () => {},
      },
      samples: noSamples(),
      random: Math.random,
      precise: () => performance.now(),
    },
    { instance: 'instant', version: '0.0.0' },
  )
  while (!fleet.nodes().every(({ health }) => health === 'online')) await Bun.sleep(1)
  return {
    fleet,
    submit: (job: Job = testJob({ arrivedAt: clock.now() })) => fleet.submit(job, new AbortController().signal),
    stop: () => fleet.stop(0),
  }
}

/** Resident memory in bytes once garbage is gone. */
export const settledRss = (): number => {
  Bun.gc(true)
  return process.memoryUsage.rss()
}
