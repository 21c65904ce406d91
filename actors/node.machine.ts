import { type AnyActorRef, assign, sendTo, setup } from 'xstate'
import { modelKey } from '../src/domain/job'
import type { Admission, Breaker, Health } from '../src/domain/node'
import { failuresWithin, isOutOfReach, nextRetryMs } from '../src/placement/breaker'
import {
  counts,
  failureOf,
  failuresWith,
  failuresWithout,
  type Heard,
  initialContext,
  isProgressing,
  messageOf,
  type NodeContext,
  type NodeInput,
  nextProbation,
  OVERLOAD_MS,
  wedgedReason,
  wedges,
  without,
} from './node/context'
import { recordBreaker, recordHealth, recordRuntimeFailure } from './node/facts'
import { pollerLogic } from './poller.machine'
import { address } from './protocol'
import { runtimeLogic } from './runtime.machine'
import { spawn } from './spawn'
import { restartsAfter, RUNTIME_INTENSITY } from './supervision'

const isRuntime = (event: unknown): boolean =>
  String((event as { actorId?: string }).actorId).startsWith(address.runtime(''))

/** One node: health x admission x breaker. Its poller asks it how it is, its runtime knows what it has in memory. */
export const nodeMachine = setup({
  types: { input: {} as NodeInput, context: {} as NodeContext, events: {} as Heard },
  delays: {
    breakerRetry: ({ context }) => context.retryMs,
    overloadTime: OVERLOAD_MS,
  },
  guards: {
    isProgressing: ({ context }) => isProgressing(context),
    wasLastChance: ({ context }) => context.failedPolls + 1 >= context.health.offlineAfter,
    isWedged: ({ context, event }) => event.type === 'request.stalled' && wedges(context, event.request),
    stillWedged: ({ context }) =>
      context.stalled.size >= context.health.stallRequests || context.now() < (context.probation?.until ?? 0),
    isOutOfReach: ({ event }) => {
      const failure = failureOf(event)
      return failure !== undefined && isOutOfReach(failure)
    },
    countsAgainstNode: ({ event }) => counts(event),
    wasInnocent: ({ context, event }) => {
      if (event.type !== 'attempt.forgiven') return false
      const left = failuresWithout(context, event.message)
      return failuresWithin(left, context.now(), context.health.breakerWindowMs) < context.health.breakerFailures
    },
    isModelMissing: ({ event }) => failureOf(event)?.class === 'model_missing',
    isOverload: ({ event }) => failureOf(event)?.class === 'overloaded',
    isRuntime: ({ event }) => isRuntime(event),
    isRuntimeSpent: ({ context, event }) =>
      isRuntime(event) && restartsAfter(context.runtimeRestarts, context.now(), RUNTIME_INTENSITY) === undefined,
    opensBreaker: ({ context, event }) =>
      counts(event) &&
      failuresWithin(context.failures, context.now(), context.health.breakerWindowMs) + 1 >=
        context.health.breakerFailures,
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
    spawnPoller: ({ context, self }) => {
      const { node, health } = context
      const member = context.roster.get(node.name)
      const input = { node, health, ports: context.poller }
      const poller = spawn(self as unknown as AnyActorRef, pollerLogic, address.poller(node.name), input)
      if (member !== undefined) context.roster.join({ ...member, poller })
    },
    pollNow: ({ context, system }) => system.get(address.poller(context.node.name))?.send({ type: 'node.poll' }),
    disown: ({ context, event }) => {
      if (event.type === 'attempt.failed' && event.model !== undefined)
        context.roster.disown(context.node.name, modelKey(event.model))
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
      healthReason: ({ context }) => wedgedReason(context.stalled.size),
      probation: ({ context }) => nextProbation(context),
    }),
    endProbation: assign({ probation: undefined }),
    /** They have not begun, so they may go elsewhere. */
    tellWedged: ({ context, system }) => {
      for (const request of context.stalled)
        system.get(address.request(request))?.send({ type: 'node.wedged', node: context.node.name })
    },
    dropStalled: assign({
      stalled: ({ context, event }) =>
        event.type === 'request.unstalled' ? without(context.stalled, event.request) : context.stalled,
    }),
    countFailure: assign({
      failures: ({ context, event }) => failuresWith(context, failureOf(event)?.message ?? ''),
      breakerReason: ({ event, context }) => failureOf(event)?.message ?? context.breakerReason,
    }),
    forgiveFailure: assign({
      failures: ({ context, event }) =>
        event.type === 'attempt.forgiven' ? failuresWithout(context, event.message) : context.failures,
    }),
    endBreaker: assign({ breakerReason: undefined, breakerSince: undefined, breakerRetryAt: undefined }),
    openFirst: assign({
      breakerSince: ({ context }) => context.now(),
      retryMs: ({ context }) => context.health.breakerRetryMs,
    }),
    openAgain: assign({ retryMs: ({ context }) => nextRetryMs(context.retryMs, context.health.breakerRetryMaxMs) }),
    noteRetryAt: assign({ breakerRetryAt: ({ context }) => context.now() + context.retryMs }),
    closeBreaker: assign({
      failures: [],
      breakerReason: undefined,
      breakerSince: undefined,
      breakerRetryAt: undefined,
    }),
    forgetResidency: ({ context }) => context.roster.get(context.node.name)?.runtime.send({ type: 'runtime.forget' }),
    tellChanged: sendTo(
      ({ system }) => system.get(address.dispatcher),
      ({ context }) => ({ type: 'node.changed', node: context.node.name }),
    ),
    recordHealth: ({ context }, { health }: { health: Health }) => recordHealth(context, health),
    recordAdmission: ({ context }, { admission }: { admission: Admission }) =>
      context.journal.record({ type: 'node.admission', at: context.now(), node: context.node.name, admission }),
    recordBreaker: ({ context }, { breaker }: { breaker: Breaker }) => recordBreaker(context, breaker),
    countRuntimeRestart: assign({
      runtimeRestarts: ({ context }) =>
        restartsAfter(context.runtimeRestarts, context.now(), RUNTIME_INTENSITY) ?? context.runtimeRestarts,
    }),
    /** It cannot go on without a runtime: its own supervisor decides. */
    giveUp: ({ event }) => {
      throw new Error(`the runtime broke too often: ${messageOf((event as unknown as { error: unknown }).error)}`)
    },
    recordRuntimeFailure: ({ context, event }) => recordRuntimeFailure(context, event),
    takeSettings: assign(({ event }) =>
      event.type === 'node.configure' ? { node: event.node, health: event.health } : {},
    ),
    tellRuntime: ({ context }) =>
      context.roster.get(context.node.name)?.runtime.send({ type: 'runtime.configure', node: context.node }),
    tellPoller: ({ context: { node, health }, system }) =>
      system.get(address.poller(node.name))?.send({ type: 'poller.configure', node, health }),
    loseLoad: sendTo(
      ({ system }) => system.get(address.dispatcher),
      ({ context }) => ({ type: 'load.lost', node: context.node.name }),
    ),
  },
}).createMachine({
  id: 'node',
  context: ({ input }) => initialContext(input),
  type: 'parallel',
  entry: ['spawnRuntime', 'spawnPoller'],
  on: {
    'node.configure': { actions: ['takeSettings', 'tellRuntime', 'tellPoller', 'tellChanged'] },
    // It listed a model that it does not have after all.
    'attempt.failed': { guard: 'isModelMissing', actions: 'disown' },
    // The keeper of its memory broke: a new one starts empty and the next poll fills it.
    'xstate.error.actor.*': [
      { guard: 'isRuntimeSpent', actions: ['recordRuntimeFailure', 'giveUp'] },
      {
        guard: 'isRuntime',
        actions: ['countRuntimeRestart', 'recordRuntimeFailure', 'loseLoad', 'spawnRuntime', 'pollNow'],
      },
    ],
  },
  states: {
    health: {
      initial: 'unknown',
      on: {
        'request.unstalled': { actions: 'dropStalled' },
        'attempt.succeeded': { actions: 'endProbation' },
      },
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
              actions: ['noteOutOfReach', 'pollNow'],
            },
            'request.stalled': [
              { guard: 'isWedged', target: 'suspect', actions: ['noteStalled', 'noteWedged', 'tellWedged'] },
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
            'attempt.succeeded': { target: 'online', actions: 'endProbation' },
            'request.stalled': [
              { guard: 'isWedged', actions: ['noteStalled', 'noteWedged', 'tellWedged'] },
              { actions: 'noteStalled' },
            ],
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
    // Refusing is fast, so that a node which does looks idle.
    refusals: {
      initial: 'none',
      states: {
        none: { on: { 'attempt.failed': { guard: 'isOverload', target: 'lately' } } },
        lately: {
          after: { overloadTime: { target: 'none', actions: 'tellChanged' } },
          on: { 'attempt.failed': { guard: 'isOverload', target: 'lately', reenter: true } },
        },
      },
    },
    breaker: {
      initial: 'closed',
      on: { 'attempt.forgiven': { actions: 'forgiveFailure' } },
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
          entry: ['noteRetryAt', { type: 'recordBreaker', params: { breaker: 'open' } }, 'tellChanged'],
          on: {
            'attempt.forgiven': {
              guard: 'wasInnocent',
              target: 'closed',
              actions: [
                'forgiveFailure',
                'endBreaker',
                { type: 'recordBreaker', params: { breaker: 'closed' } },
                'tellChanged',
              ],
            },
          },
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
