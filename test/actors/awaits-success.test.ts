import { expect, test } from 'bun:test'
import { transition } from 'xstate'
import { awaitsPoll, awaitsSuccess, type NodeStanding } from '../../actors/node/context'
import { nodeMachine } from '../../actors/node.machine'
import { testConfig, testNode } from '../support/host'

const HEALTH = ['unknown', 'online', 'suspect', 'offline'] as const
const BREAKER = ['closed', 'open', 'half_open'] as const

const input = {
  node: testNode('a'),
  now: () => 0,
  lastProgressAt: () => 0,
  health: testConfig().health,
  journal: { record: () => undefined },
} as never

test('good news are told exactly where they change something', () => {
  for (const health of HEALTH)
    for (const breaker of BREAKER)
      for (const probation of [undefined, { until: 0, waitMs: 1 }]) {
        const snapshot = nodeMachine.resolveState({
          value: { health, admission: 'open', refusals: 'none', breaker },
          context: { ...(input as object), probation, failures: [], stalled: new Set(), retryMs: 1 } as never,
        })
        const [next] = transition(nodeMachine, snapshot, { type: 'attempt.succeeded' })

        const changes =
          JSON.stringify(next.value) !== JSON.stringify(snapshot.value) || next.context.probation !== probation
        expect([health, breaker, probation, changes]).toEqual([
          health,
          breaker,
          probation,
          awaitsSuccess(snapshot as unknown as NodeStanding),
        ])
      }
})

test('an answered poll is told exactly where it changes something', () => {
  for (const health of HEALTH) {
    const snapshot = nodeMachine.resolveState({
      value: { health, admission: 'open', refusals: 'none', breaker: 'closed' },
      context: { ...(input as object), probation: undefined, failures: [], stalled: new Set(), retryMs: 1 } as never,
    })
    const [next] = transition(nodeMachine, snapshot, { type: 'poll.succeeded' })

    const changes = JSON.stringify(next.value) !== JSON.stringify(snapshot.value)
    expect([health, changes]).toEqual([health, awaitsPoll(snapshot as unknown as NodeStanding)])
  }
})
