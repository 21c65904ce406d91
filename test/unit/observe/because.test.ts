import { describe, expect, test } from 'bun:test'
import type { DecisionRecord } from '../../../src/domain/record'
import { because } from '../../../src/observe/because'
import { eliminated, HOLD, outcome, ranked, record, round, start, tooBig } from './builders'

const attempt = (node: string, retried = true): DecisionRecord['failures'][number] => ({
  node,
  model: 'qwen3:8b',
  atMs: 20,
  class: 'connect',
  message: 'connection refused',
  bytes: 0,
  elapsedMs: 12,
  retried,
})

const two = [ranked('rig', [0, 0, 0]), ranked('box', [0, 0, 1])]
const startedBy = (reason: string) => record({ rounds: [round(two, start('rig', { reason }))] })

const table: readonly (readonly [name: string, record: DecisionRecord, code: string, sentence: string])[] = [
  [
    'a resident model with a free slot',
    startedBy('resident'),
    'resident',
    'rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
  ],
  [
    'a resident model whose queue was joined: who knows whether a slot is free',
    record({ rounds: [round(two, { kind: 'bind', node: 'rig', model: 'qwen3:8b', reason: 'resident' })] }),
    'resident',
    'rig has qwen3:8b in memory, the best of 2 candidates',
  ],
  [
    'a load on the only node left: the others may well hold the model',
    record({
      rounds: [
        round([ranked('rig', [2]), eliminated('box', 'pinned_elsewhere')], {
          kind: 'load',
          node: 'rig',
          model: 'qwen3:8b',
          reason: 'cold_load',
        }),
      ],
    }),
    'cold_load',
    'rig loads qwen3:8b as the only node that can serve it now: box is not the node that was asked for',
  ],
  [
    'a load that a score prefers',
    record({ rounds: [round(two, { kind: 'bind', node: 'rig', model: 'qwen3:8b', reason: 'cold_load' })] }),
    'cold_load',
    'rig loads qwen3:8b, the best of 2 candidates',
  ],
  ['a model resident a moment ago', startedBy('recent'), 'recent', 'rig had qwen3:8b in memory a moment ago'],
  [
    'the node of the conversation',
    startedBy('session'),
    'session',
    'rig answered this conversation before and may still hold its beginning',
  ],
  ['an idle node', startedBy('idle'), 'idle', 'rig had nothing else to do'],
  ['a lent request', startedBy('lent'), 'lent', 'rig answers sooner than the queue where it waited'],
  ['a moved request', startedBy('moved'), 'moved', 'it was moved to rig while it waited'],
  ['a pinned request', startedBy('pinned'), 'pinned', 'the request asked for rig'],
  ['a guarded model', startedBy('guardian'), 'guardian', 'rig keeps qwen3:8b for this kind of request'],
  [
    'the only node left',
    record({
      rounds: [
        round(
          [ranked('rig', [0]), tooBig('pi'), eliminated('old', 'offline')],
          start('rig', { reason: 'only_candidate' }),
        ),
      ],
    }),
    'only_candidate',
    'rig is the only node that can serve qwen3:8b now: pi needs 18.6 GB, has 7.2 GB; old is offline',
  ],
  [
    'a reason outside the closed set, one candidate',
    record({ rounds: [round([ranked('rig', [0])], start('rig', { reason: 'lowest_cost' }))] }),
    'only_candidate',
    'rig is the only node that can serve qwen3:8b now',
  ],
  [
    'a reason outside the closed set, several candidates',
    startedBy('lowest_cost'),
    'resident',
    'rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
  ],
  [
    'a load that pushes models out',
    record({
      rounds: [
        round(two, {
          kind: 'load',
          node: 'box',
          model: 'qwen3:8b',
          evicts: ['gemma3:27b', 'phi4'],
          reason: 'cold_load',
        }),
      ],
    }),
    'cold_load',
    'no free slot has qwen3:8b in memory, so box loads it and drops gemma3:27b and phi4 for it',
  ],
  [
    'another model of the chain',
    record({
      asked: { ...record().asked, model: 'smart' },
      models: ['smart', 'qwen3:8b'],
      rounds: [round(two, start('rig', { reason: 'fallback' }))],
    }),
    'fallback',
    'smart could not be served now, qwen3:8b on rig stands in',
  ],
  [
    'the same model under another spelling is no fallback',
    record({ models: ['Qwen3:8B:latest'], rounds: [round(two, start('rig'))] }),
    'resident',
    'rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
  ],
  [
    "the node's alias of the only model asked for is no fallback",
    record({ models: ['qwen-alias'], rounds: [round(two, start('rig'))] }),
    'resident',
    'rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
  ],
  [
    'a retry, whatever the policy says',
    record({
      rounds: [
        round(two, start('rig')),
        round([ranked('box', [0])], start('box', { reason: 'only_candidate' }), { cause: 'retry' }),
      ],
      failures: [attempt('rig')],
    }),
    'retried',
    'rig failed after 12 ms (connect: connection refused), so box took it',
  ],
  [
    'a failure that ended the request is no retry',
    record({ rounds: [round(two, start('rig'))], failures: [attempt('rig', false)] }),
    'resident',
    'rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
  ],
  [
    'a retry that no node took',
    record({
      rounds: [round(two, start('rig')), round([tooBig('pi')], HOLD, { cause: 'retry' })],
      failures: [attempt('rig')],
    }),
    'resident',
    'rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
  ],
  [
    'a start after waiting',
    record({
      rounds: [round([tooBig('pi')], HOLD), round([ranked('rig', [0])], start('rig', { reason: 'only_candidate' }))],
      phases: [
        { name: 'held', fromMs: 1, toMs: 10_001 },
        { name: 'waiting', fromMs: 10_001, toMs: 12_001 },
      ],
    }),
    'only_candidate',
    'rig is the only node that can serve qwen3:8b now, after 12 s of waiting',
  ],
  [
    'a held request',
    record({ rounds: [round([tooBig('pi'), eliminated('dgx', 'offline')], HOLD)] }),
    'held',
    'no node can serve qwen3:8b now: pi needs 18.6 GB, has 7.2 GB; dgx is offline',
  ],
  [
    'a held request with many nodes',
    record({
      rounds: [
        round(
          ['a', 'b', 'c', 'd'].map((node) => eliminated(node, 'offline')),
          HOLD,
          { more: { ranked: 0, eliminated: { offline: 3 } } },
        ),
      ],
    }),
    'held',
    'no node can serve qwen3:8b now: a is offline; b is offline; c is offline; 4 others',
  ],
  ['a model that nobody has', record({ rounds: [round([], HOLD)] }), 'held', 'no node has qwen3:8b'],
  [
    'a request that waits for a slot',
    record({ rounds: [round(two, { kind: 'wait', node: 'rig', model: 'qwen3:8b', reason: 'held' })] }),
    'held',
    'waits for a free slot on 2 nodes that can serve it, rig probably first',
  ],
  [
    'a request whose model is kept out by another one',
    record({
      rounds: [
        round([{ ...ranked('rig', [5, 0, 0]), terms: { tier: 'blocked', busy_with: 'gemma3:4b' } }], {
          kind: 'wait',
          node: 'rig',
          model: 'qwen3:8b',
          reason: 'held',
        }),
      ],
    }),
    'held',
    'rig loads qwen3:8b once it is done with gemma3:4b',
  ],
  [
    'a request that waits while it is the turn of another model',
    record({
      rounds: [
        round([{ ...ranked('rig', [3]), terms: { tier: 'busy', turn_of: 'llama3.3:70b' } }], {
          kind: 'wait',
          node: 'rig',
          model: 'qwen3:8b',
          reason: 'held',
        }),
      ],
    }),
    'held',
    'waits while rig makes room for llama3.3:70b',
  ],
  [
    'a request that waits for memory',
    record({
      rounds: [
        round([{ ...tooBig('rig'), need: 5, have: 3 }], {
          kind: 'wait',
          node: 'rig',
          model: 'qwen3:8b',
          reason: 'held',
        }),
      ],
    }),
    'held',
    'waits until what is in memory has answered: rig needs 5 GB, has 3 GB',
  ],
  [
    'a request that was refused before any placement',
    record({ outcome: { ...outcome({ end: 'rejected', status: 429, message: 'The queue is full.' }), totalMs: 1 } }),
    'held',
    'The queue is full.',
  ],
  ['a request that has just arrived', record(), 'held', 'it was not placed'],
]

describe('because', () => {
  for (const [name, given, code, sentence] of table) {
    test(name, () => expect<{ code: string; sentence: string }>(because(given)).toEqual({ code, sentence }))
  }
})
