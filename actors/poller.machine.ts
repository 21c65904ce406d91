import type { Config } from '../src/domain/config'
import type { NodeDescription, NodeReport } from '../src/domain/node'
import { type Chart, flat } from './flat'
import { address, type PollerEvent } from './protocol'
import type { Roster } from './roster'

export interface PollerPorts {
  readonly report: (node: NodeDescription, signal: AbortSignal) => Promise<NodeReport>
  readonly roster: Roster
  /** An answered poll changes what is thought of the node. Nearly always false, and then it is not told. */
  readonly awaitsPoll: (node: string) => boolean
  readonly now: () => number
}

export interface PollerContext {
  node: NodeDescription
  health: Config['health']
  readonly ports: PollerPorts
  /** When the poll under way began, in ms since the epoch. */
  askedAt: number
}

export type PollerInput = Pick<PollerContext, 'node' | 'health' | 'ports'>

const answered = {
  'poll.answered': { target: 'resting', actions: ['takeReport'] },
  'poll.broke': { target: 'resting', actions: ['tellFailed'] },
} as const
const timeout = { target: 'resting', actions: ['tellTimeout'] } as const

/** Asks one node how it is, again and again; its own loop, so that a frozen node delays no other. */
export const pollerChart = {
  id: 'poller',
  initial: 'asking',
  on: { 'poller.configure': { actions: ['configure'] } },
  states: {
    asking: {
      entry: ['noteAsked'],
      effects: ['ask'],
      on: answered,
      after: { every: { target: 'late' }, timeout },
    },
    // What is known of the node is older by now than what is known of the others.
    late: { effects: ['ask'], on: answered, after: { timeout } },
    resting: {
      on: {
        'node.poll': { target: 'asking' },
        'poller.configure': { target: 'asking', actions: ['configure'] },
      },
      after: { every: { target: 'asking' } },
    },
  },
} as const satisfies Chart

type Of<T extends PollerEvent['type']> = Extract<PollerEvent, { type: T }>

export const pollerLogic = flat<PollerContext, PollerEvent, PollerInput>(pollerChart, {
  context: (input) => ({ ...input, askedAt: input.ports.now() }),
  delays: {
    every: ({ health }) => health.pollEveryMs,
    timeout: ({ health, askedAt, ports }) => Math.max(0, askedAt + health.pollTimeoutMs - ports.now()),
  },
  actions: {
    noteAsked: (context) => {
      context.askedAt = context.ports.now()
    },
    configure: (context, event) => {
      const { node, health } = event as Of<'poller.configure'>
      context.node = node
      context.health = health
    },
    takeReport: ({ node: { name }, ports, askedAt }, event, api) => {
      const { report } = event as Of<'poll.answered'>
      const now = ports.now()
      ports.roster.reported(name, report, now, now - askedAt)
      api.send(address.runtime(name), { type: 'runtime.observed', report, startedAt: askedAt })
      api.send(address.dispatcher, { type: 'node.reported', node: name, report, startedAt: askedAt })
      if (ports.awaitsPoll(name)) api.send(address.node(name), { type: 'poll.succeeded' })
    },
    tellFailed: ({ node: { name } }, event, api) =>
      api.send(address.node(name), { type: 'poll.failed', message: (event as Of<'poll.broke'>).message }),
    tellTimeout: ({ node: { name } }, _event, api) =>
      api.send(address.node(name), { type: 'poll.failed', message: 'no answer within health.poll_timeout' }),
  },
  effects: {
    ask: ({ node, ports }, api, signal) => {
      const tell = (event: PollerEvent): void => {
        if (!signal.aborted) api.self.send(event)
      }
      Promise.try(ports.report, node, signal).then(
        (report) => tell({ type: 'poll.answered', report }),
        (error: unknown) =>
          tell({ type: 'poll.broke', message: error instanceof Error ? error.message : String(error) }),
      )
    },
  },
})
