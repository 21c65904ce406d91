import { type AnyActorRef, assign, raise, sendTo, setup } from 'xstate'
import type { Config } from '../src/domain/config'
import type { Failure } from '../src/domain/facts'
import type { Admission, Breaker, Health, NodeDescription, NodeReport } from '../src/domain/node'
import { countsAgainstNode, failuresWithin, isOutOfReach, nextRetryMs } from '../src/placement/breaker'
import type { Journal } from '../src/ports/journal'
import { notProvided } from './not-provided'
import { address, type NodeEvent } from './protocol'
import type { Roster } from './roster'
import { type RuntimePorts, runtimeLogic } from './runtime.machine'
import { spawn } from './spawn'

export interface Poll {
  readonly report: NodeReport
  readonly startedAt: number
  readonly tookMs: number
}

export interface NodeInput {
  readonly node: NodeDescription
  readonly roster: Roster
  readonly journal: Journal
  readonly runtime: RuntimePorts
  readonly now: () => number
  /** ms since the epoch of the last byte of any answer from the node, or 0. */
  readonly lastProgressAt: (node: string) => number
  readonly health: Config['health']
}

export interface NodeContext extends NodeInput {
  readonly failedPolls: number
  readonly healthReason: string | undefined
  /** Requests that stand without a first byte for too long. */
  readonly stalled: ReadonlySet<string>
  /** What counted against it lately, for the breaker. */
  readonly failures: readonly { readonly at: number; readonly message: string }[]
  readonly breakerReason: string | undefined
  readonly breakerSince: number | undefined
  readonly retryMs: number
}

type Internal = { readonly type: 'poll.succeeded' } | { readonly type: 'poll.failed'; readonly message: string }
type Heard = NodeEvent | Internal

/** Any byte from the node younger than this counts as life when a poll goes unanswered, in ms. */
const PROGRESS_MS = 5_000

const failureOf = (event: Heard): Failure | undefined => (event.type === 'attempt.failed' ? event.failure : undefined)
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const without = (set: ReadonlySet<string>, one: string): ReadonlySet<string> =>
  new Set([...set].filter((other) => other !== one))

/** One node: health x admission x breaker, and a poll loop of its own, so that a frozen node delays no other. */
export const nodeMachine = setup({
  types: { input: {} as NodeInput, context: {} as NodeContext, events: {} as Heard },
  actors: { poll: notProvided<Poll, { readonly node: NodeDescription }>('poll') },
  delays: {
    pollEvery: ({ context }) => context.health.pollEveryMs,
    pollTimeout: ({ context }) => context.health.pollTimeoutMs,
    breakerRetry: ({ context }) => context.retryMs,
  },
  guards: {
    isProgressing: ({ context }) => context.now() - context.lastProgressAt(context.node.name) < PROGRESS_MS,
    wasLastChance: ({ context }) => context.failedPolls + 1 >= context.health.offlineAfter,
    isWedged: ({ context, event }) =>
      event.type === 'request.stalled' &&
      new Set([...context.stalled, event.request]).size >= context.health.stallRequests,
    stillWedged: ({ context }) => context.stalled.size >= context.health.stallRequests,
    isOutOfReach: ({ event }) => {
      const failure = failureOf(event)
      return failure !== undefined && isOutOfReach(failure)
    },
    countsAgainstNode: ({ event }) => {
      const failure = failureOf(event)
      return failure !== undefined && countsAgainstNode(failure)
    },
    isRuntime: ({ event }) =>
      String((event as unknown as { actorId?: string }).actorId).startsWith(address.runtime('')),
    opensBreaker: ({ context, event }) => {
      const failure = failureOf(event)
      if (failure === undefined || !countsAgainstNode(failure)) return false
      return (
        failuresWithin(context.failures, context.now(), context.health.breakerWindowMs) + 1 >=
        context.health.breakerFailures
      )
    },
  },
  actions: {
    spawnRuntime: ({ context, self }) => {
      const member = context.roster.get(context.node.name)
      const runtime = spawn(self as unknown as AnyActorRef, runtimeLogic, address.runtime(context.node.name), {
        node: context.node,
        ports: context.runtime,
      })
      if (member !== undefined) context.roster.join({ ...member, runtime })
    },
    takeReport: ({ context, system }, { report, startedAt, tookMs }: Poll) => {
      const { name } = context.node
      context.roster.reported(name, report, context.now(), tookMs)
      context.roster.get(name)?.runtime.send({ type: 'runtime.observed', report, startedAt })
      system.get(address.dispatcher)?.send({ type: 'node.reported', node: name, report, startedAt })
    },
    countFailedPoll: assign({
      failedPolls: ({ context }) => context.failedPolls + 1,
      healthReason: ({ event, context }) => (event.type === 'poll.failed' ? event.message : context.healthReason),
    }),
    forgive: assign({ failedPolls: 0, healthReason: undefined, stalled: new Set<string>() }),
    noteOutOfReach: assign({ healthReason: ({ event }) => failureOf(event)?.message }),
    noteStalled: assign({
      stalled: ({ context, event }) =>
        event.type === 'request.stalled' ? new Set([...context.stalled, event.request]) : context.stalled,
    }),
    noteWedged: assign({
      healthReason: ({ context }) => `no_progress: ${context.health.stallRequests} requests stand without a first byte`,
    }),
    dropStalled: assign({
      stalled: ({ context, event }) =>
        event.type === 'request.unstalled' ? without(context.stalled, event.request) : context.stalled,
    }),
    countFailure: assign({
      failures: ({ context, event }) => {
        const at = context.now()
        return [
          ...context.failures.filter((failure) => at - failure.at < context.health.breakerWindowMs),
          { at, message: failureOf(event)?.message ?? '' },
        ]
      },
      breakerReason: ({ event, context }) => failureOf(event)?.message ?? context.breakerReason,
    }),
    openFirst: assign({
      breakerSince: ({ context }) => context.now(),
      retryMs: ({ context }) => context.health.breakerRetryMs,
    }),
    openAgain: assign({ retryMs: ({ context }) => nextRetryMs(context.retryMs, context.health.breakerRetryMaxMs) }),
    closeBreaker: assign({ failures: [], breakerReason: undefined, breakerSince: undefined }),
    forgetResidency: ({ context }) => context.roster.get(context.node.name)?.runtime.send({ type: 'runtime.forget' }),
    tellChanged: sendTo(
      ({ system }) => system.get(address.dispatcher),
      ({ context }) => ({ type: 'node.changed', node: context.node.name }),
    ),
    recordHealth: ({ context }, { health }: { health: Health }) =>
      context.journal.record({
        type: 'node.health',
        at: context.now(),
        node: context.node.name,
        health,
        ...(context.healthReason === undefined ? {} : { reason: context.healthReason }),
      }),
    recordAdmission: ({ context }, { admission }: { admission: Admission }) =>
      context.journal.record({ type: 'node.admission', at: context.now(), node: context.node.name, admission }),
    recordBreaker: ({ context }, { breaker }: { breaker: Breaker }) => {
      const { node, breakerReason, retryMs } = context
      const at = context.now()
      const why = breaker === 'closed' || breakerReason === undefined ? {} : { reason: breakerReason }
      context.journal.record({
        type: 'node.breaker',
        at,
        node: node.name,
        breaker,
        ...why,
        ...(breaker === 'open' ? { retryAt: at + retryMs } : {}),
      })
    },
    recordRuntimeFailure: ({ context, event }) => {
      const { actorId, error } = event as unknown as { actorId: string; error: unknown }
      context.journal.record({
        type: 'actor.failed',
        at: context.now(),
        actor: actorId,
        machine: 'runtime',
        message: messageOf(error),
        restarted: true,
      })
    },
    loseLoad: sendTo(
      ({ system }) => system.get(address.dispatcher),
      ({ context }) => ({ type: 'load.failed', node: context.node.name, model: '', message: 'the load was lost' }),
    ),
  },
}).createMachine({
  id: 'node',
  context: ({ input }) => ({
    ...input,
    failedPolls: 0,
    healthReason: undefined,
    stalled: new Set<string>(),
    failures: [],
    breakerReason: undefined,
    breakerSince: undefined,
    retryMs: input.health.breakerRetryMs,
  }),
  type: 'parallel',
  entry: 'spawnRuntime',
  on: {
    // The keeper of its memory broke: a new one starts empty and the next poll fills it.
    'xstate.error.actor.*': {
      guard: 'isRuntime',
      actions: ['recordRuntimeFailure', 'loseLoad', 'spawnRuntime', raise({ type: 'node.poll' })],
    },
  },
  states: {
    polling: {
      initial: 'asking',
      states: {
        asking: {
          invoke: {
            src: 'poll',
            input: ({ context }) => ({ node: context.node }),
            onDone: {
              target: 'resting',
              actions: [{ type: 'takeReport', params: ({ event }) => event.output }, raise({ type: 'poll.succeeded' })],
            },
            onError: {
              target: 'resting',
              actions: raise(({ event }) => ({ type: 'poll.failed' as const, message: messageOf(event.error) })),
            },
          },
          after: {
            pollTimeout: {
              target: 'resting',
              actions: raise({ type: 'poll.failed', message: 'no answer within health.poll_timeout' }),
            },
          },
        },
        resting: { after: { pollEvery: 'asking' }, on: { 'node.poll': 'asking' } },
      },
    },
    health: {
      initial: 'unknown',
      on: { 'request.unstalled': { actions: 'dropStalled' } },
      states: {
        unknown: {
          on: {
            'poll.succeeded': 'online',
            'poll.failed': [
              { guard: 'wasLastChance', target: 'offline', actions: 'countFailedPoll' },
              { actions: 'countFailedPoll' },
            ],
          },
        },
        online: {
          entry: ['forgive', { type: 'recordHealth', params: { health: 'online' } }, 'tellChanged'],
          on: {
            // Busy is not dead: bytes that still flow are life.
            'poll.failed': [{ guard: 'isProgressing' }, { target: 'suspect', actions: 'countFailedPoll' }],
            'attempt.failed': {
              guard: 'isOutOfReach',
              target: 'suspect',
              actions: ['noteOutOfReach', raise({ type: 'node.poll' })],
            },
            'request.stalled': [
              { guard: 'isWedged', target: 'suspect', actions: ['noteStalled', 'noteWedged'] },
              { actions: 'noteStalled' },
            ],
          },
        },
        // It stands behind the others until a poll (and, when wedged, a request) went well.
        suspect: {
          entry: [{ type: 'recordHealth', params: { health: 'suspect' } }, 'tellChanged'],
          on: {
            'poll.succeeded': [{ guard: 'stillWedged' }, { target: 'online' }],
            'poll.failed': [
              { guard: 'isProgressing' },
              { guard: 'wasLastChance', target: 'offline', actions: 'countFailedPoll' },
              { actions: 'countFailedPoll' },
            ],
            'attempt.succeeded': 'online',
            'request.stalled': { actions: 'noteStalled' },
          },
        },
        offline: {
          entry: [{ type: 'recordHealth', params: { health: 'offline' } }, 'forgetResidency', 'tellChanged'],
          on: { 'poll.succeeded': 'online', 'poll.failed': { actions: 'countFailedPoll' } },
        },
      },
    },
    admission: {
      initial: 'open',
      states: {
        open: { on: { 'node.pause': 'paused', 'node.drain': 'draining' } },
        paused: {
          entry: [{ type: 'recordAdmission', params: { admission: 'paused' } }, 'tellChanged'],
          on: { 'node.resume': 'open', 'node.drain': 'draining' },
          exit: [{ type: 'recordAdmission', params: { admission: 'open' } }, 'tellChanged'],
        },
        draining: {
          entry: [{ type: 'recordAdmission', params: { admission: 'draining' } }, 'tellChanged'],
          on: { 'node.resume': 'open', 'node.pause': 'paused' },
          exit: [{ type: 'recordAdmission', params: { admission: 'open' } }, 'tellChanged'],
        },
      },
    },
    breaker: {
      initial: 'closed',
      states: {
        closed: {
          on: {
            'attempt.failed': [
              { guard: 'opensBreaker', target: 'open', actions: ['countFailure', 'openFirst'] },
              { guard: 'countsAgainstNode', actions: 'countFailure' },
            ],
          },
        },
        open: {
          entry: [{ type: 'recordBreaker', params: { breaker: 'open' } }, 'tellChanged'],
          after: { breakerRetry: 'half_open' },
        },
        // One request at a time may try it; the dispatcher sees to that.
        half_open: {
          entry: [{ type: 'recordBreaker', params: { breaker: 'half_open' } }, 'tellChanged'],
          on: {
            'attempt.succeeded': {
              target: 'closed',
              actions: ['closeBreaker', { type: 'recordBreaker', params: { breaker: 'closed' } }, 'tellChanged'],
            },
            'attempt.failed': { guard: 'countsAgainstNode', target: 'open', actions: ['countFailure', 'openAgain'] },
          },
        },
      },
    },
  },
})
