import { type Chart, flat } from './flat'
import type { RequestEvent } from './protocol'
import type { RequestContext, RequestInput } from './request/context'
import { forward } from './request/forward'
import { settle } from './request/outcome'
import * as deadlines from './request/deadlines'
import * as failures from './request/failures'
import * as steps from './request/steps'
import { isQueueCrash } from './request/steps'

/** What ends or moves a request while it is not at a node. */
const held = { target: 'held' } as const
const waiting = { target: 'waiting' } as const
const readmitted = { guard: 'hasStale', target: 'placing', reenter: true, actions: ['readmitStale'] } as const
const refused = { target: 'settled', actions: ['takeRefusal'] } as const
const placed = {
  'placement.held': held,
  'placement.waiting': waiting,
  'placement.loading': { target: 'loading' },
  'placement.bound': { target: 'queued', actions: ['rememberBound'] },
  'placement.refused': refused,
  'placement.lost': [
    // Its node was taken out of the fleet, or a load that somebody else began failed: not its own failure.
    { guard: 'isBlameless', target: 'placing', reenter: true },
    { guard: 'wasUnsent', target: 'placing', reenter: true, actions: ['excludeLost'] },
    { guard: 'mayTryAgain', target: 'placing', reenter: true, actions: ['excludeLost'] },
    { target: 'settled', actions: ['failLost'] },
  ],
  'queue.refused': [
    { guard: 'brokeQueues', target: 'settled', actions: ['failInternal'] },
    { target: 'placing', reenter: true, actions: ['forgetBound'] },
  ],
  'slot.granted': { target: 'starting', actions: ['takeSlot'] },
  // The dispatcher lost its memory. A request on whose account it did so twice is not put to it again.
  'place.again': [
    { guard: 'brokeDispatcher', target: 'settled', actions: ['failInternal'] },
    { target: 'placing', reenter: true, actions: ['noteBlame'] },
  ],
} as const

/** A request that was about to enter so many queues as they broke is not put into another. */
const MOST_QUEUE_CRASHES = 3

/** One request from submission to its one terminal status. */
export const requestChart = {
  id: 'request',
  initial: 'placing',
  on: {
    'client.left': { target: 'settled', actions: ['noteClientLeft', 'withdraw'] },
    'request.cut': { target: 'settled', actions: ['noteCut', 'withdraw'] },
    'headers.sent': { actions: ['noteHeaders'] },
  },
  states: {
    placing: {
      entry: ['endHold', 'ask'],
      on: {
        ...placed,
        // No other node can take it now.
        'placement.held': [readmitted, held],
        'placement.waiting': [readmitted, waiting],
        'placement.refused': [readmitted, refused],
      },
    },
    held: {
      entry: ['beginHold'],
      on: { ...placed, 'placement.held': {}, 'hold.ticked': { actions: ['askHeld'] } },
      after: {
        holdLimit: { target: 'settled', actions: ['expireHold', 'withdraw'] },
        deadline: { target: 'settled', actions: ['expireDeadline', 'withdraw'] },
      },
    },
    waiting: {
      entry: ['endHold', 'tellWaiting'],
      on: { ...placed, 'placement.waiting': {} },
      after: { deadline: { target: 'settled', actions: ['expireDeadline', 'withdraw'] } },
    },
    // A slot is kept for it while its model comes into memory; the load itself belongs to the node.
    loading: {
      entry: ['endHold', 'tellLoading'],
      on: { ...placed, 'placement.loading': {} },
      after: { deadline: { target: 'settled', actions: ['expireDeadline', 'withdraw'] } },
    },
    // Bound to one queue (early policies).
    queued: {
      entry: ['endHold', 'tellWaiting'],
      // Its queue knows it, whatever the dispatcher forgot.
      on: { ...placed, 'place.again': {} },
      after: { deadline: { target: 'settled', actions: ['expireDeadline', 'withdraw'] } },
    },
    // Sent; nothing has come back yet, so another node may still be tried.
    starting: {
      entry: ['endHold', 'tellPrefill'],
      effects: ['forward'],
      on: {
        'reply.started': { target: 'streaming', actions: ['noteFirstByte'] },
        'reply.refused': { target: 'settled', actions: ['takeRefusal', 'release'] },
        'reply.failed': [
          { guard: 'isRejected', target: 'settled', actions: ['noteRejected', 'release'] },
          { guard: 'isRequestsFault', target: 'settled', actions: ['noteRequestsFault', 'failLast', 'release'] },
          // No node has seen it yet. Where no other can take it, it is held until this one is back.
          { guard: 'wasUnsent', target: 'placing', actions: ['noteFailure', 'release', 'excludeNode'] },
          { guard: 'mayTryAgain', target: 'placing', actions: ['noteFailure', 'release', 'excludeNode'] },
          { target: 'settled', actions: ['noteFailure', 'failLast', 'release'] },
        ],
        // A slow node is better than none, so it leaves only for one that would take it at once.
        'node.wedged': { guard: 'mayTryAgain', actions: ['askElsewhere'] },
        'placement.elsewhere': {
          guard: 'isThisAttempt',
          target: 'placing',
          actions: ['noteStandstill', 'releaseLingering', 'excludeNode'],
        },
      },
      after: {
        stall: { actions: ['tellStalled'] },
        firstByte: [
          {
            guard: 'mayTryAgain',
            target: 'placing',
            actions: ['noteFirstByteTimeout', 'releaseLingering', 'excludeNode'],
          },
          { target: 'settled', actions: ['noteFirstByteTimeout', 'failLast', 'releaseLingering'] },
        ],
        total: { target: 'settled', actions: ['capTotal', 'releaseLingering'] },
      },
    },
    // The client has the first byte: no other node may be tried.
    streaming: {
      entry: ['tellGenerating'],
      effects: ['forward'],
      on: {
        'reply.finished': { target: 'settled', actions: ['noteFinished', 'release'] },
      },
      after: {
        streamIdle: [
          { guard: 'isClientStalled', target: 'settled', actions: ['cutStalledClient', 'releaseLingering'] },
          { guard: 'isSilent', target: 'settled', actions: ['cutSilent', 'releaseLingering'] },
          { target: 'streaming', reenter: true },
        ],
        total: { target: 'settled', actions: ['capTotal', 'releaseLingering'] },
      },
    },
    settled: { entry: ['settle'], final: true },
  },
} as const satisfies Chart

export const requestLogic = flat<RequestContext, RequestEvent, RequestInput>(requestChart, {
  context: ({ job, ports }) => ({
    job,
    ports,
    attempt: 1,
    retries: 0,
    excluded: [],
    unreached: [],
    unsent: 0,
    phase: 'placing',
    heldMs: 0,
    heldSince: 0,
    place: undefined,
    bound: undefined,
    flow: undefined,
    startedAt: 0,
    engineMs: 0,
    hasHeaders: false,
    firstByteMs: undefined,
    stalled: false,
    hasBlame: false,
    queueCrashes: 0,
    lastFailure: undefined,
    lastFailedNode: undefined,
    staleAt: undefined,
    summary: undefined,
    ending: undefined,
    bytes: 0,
  }),
  delays: {
    holdLimit: ({ ports, heldMs }) => Math.max(0, ports.config.policy.holdTimeoutMs - heldMs),
    deadline: ({ job, ports }) =>
      job.deadlineAt === undefined ? Number.POSITIVE_INFINITY : Math.max(0, job.deadlineAt - ports.now()),
    firstByte: ({ ports, place }) => ports.config.limits.firstTokenTimeoutMs + (place?.loadMs ?? 0),
    stall: deadlines.untilStallMs,
    streamIdle: deadlines.untilIdleMs,
    total: deadlines.untilTotalMs,
  },
  guards: {
    mayTryAgain: failures.mayTryAgain,
    wasUnsent: failures.wasUnsent,
    hasStale: ({ staleAt }) => staleAt !== undefined,
    isBlameless: (_context, event) =>
      (event as Extract<RequestEvent, { type: 'placement.lost' }>).failure === undefined,
    isThisAttempt: ({ attempt }, event) =>
      attempt === (event as Extract<RequestEvent, { type: 'placement.elsewhere' }>).attempt,
    brokeQueues: ({ queueCrashes }, event) =>
      queueCrashes >= MOST_QUEUE_CRASHES && isQueueCrash(event as Extract<RequestEvent, { type: 'queue.refused' }>),
    brokeDispatcher: ({ hasBlame }, event) =>
      hasBlame && (event as Extract<RequestEvent, { type: 'place.again' }>).blamed === true,
    isRejected: (_context, event) => (event as Extract<RequestEvent, { type: 'reply.failed' }>).rejected,
    isRequestsFault: failures.isRequestsFault,
    isSilent: deadlines.isSilent,
    isClientStalled: deadlines.isClientStalled,
  },
  actions: { ...steps.actions, settle },
  effects: { forward },
})
