import { expect, test } from 'bun:test'
import type { Fact } from '../../../src/domain/facts'
import { createDecisions } from '../../../src/observe/decisions'
import { renderExplain } from '../../../src/observe/explain'
import {
  arrived,
  eliminated,
  failed,
  HOLD,
  job,
  ordinary,
  outcome,
  phase,
  placed,
  ranked,
  record,
  round,
  settled,
  start,
  tooBig,
} from './builders'

const explained = (...facts: Fact[]): string => {
  const decisions = createDecisions({ version: '0.1.0' })
  for (const fact of facts) decisions.hear(fact)
  const found = decisions.get('req_1')
  return found ? renderExplain(found) : ''
}

test('an ordinary request, word for word', () => {
  expect(explained(...ordinary())).toBe(
    [
      'req_1   qwen3:8b   on rig   200 in 9.8 s   (resident)   openai.chat, streamed',
      '  because  rig has qwen3:8b in memory and a free slot, the best of 2 candidates',
      '',
      '  0.00 s   placing    residency, 3 candidates -> start qwen3:8b on rig (resident)',
      '             * rig  0/0/0  tier resident  in_flight 0',
      '               box  0/0/1  tier resident  in_flight 1',
      '               pi       -  memory_fit: needs 18.6 GB, has 7.2 GB',
      '  0.00 s   prefill    rig, for 4.0 s, 8 190 tokens',
      '  4.02 s   generating rig, for 5.8 s, 212 tokens at 38 tok/s',
      '  9.80 s   done       200, 20 480 bytes',
      '',
    ].join('\n'),
  )
})

test('of an answer that came whole nobody knows how long the prompt took', () => {
  const whole = { outcome: outcome({ tokensIn: 12, tokensOut: 40 }) }
  const told = (stream: boolean) =>
    explained(arrived(job({ stream })), phase(1, 'prefill', { node: 'rig' }), settled(9, whole))

  expect(told(false)).toContain('12 tokens, and writing the answer, which came whole\n')
  expect(told(true)).toContain('12 tokens\n')
})

test('a retry tells both rounds, the failure between them, and the count at the end', () => {
  const text = explained(
    arrived(),
    placed(0, [ranked('rig', [0]), ranked('box', [1])], start('rig')),
    phase(1, 'prefill', { node: 'rig' }),
    failed(20, 'rig', { failure: { class: 'status', status: 500, message: 'out of memory', bytes: 0, elapsedMs: 14 } }),
    placed(20, [ranked('box', [1]), eliminated('rig', 'failed_before')], start('box', { reason: 'only_candidate' }), {
      cause: 'retry',
    }),
    phase(20, 'loading', { node: 'box', estimate: { valueMs: 8_000, basis: 'history', samples: 4 } }),
    phase(8_000, 'generating', { node: 'box' }),
    settled(9_000, { outcome: outcome({ node: 'box', retries: 1 }) }),
  )

  expect(text).toContain('because  rig failed after 14 ms (status: out of memory), so box took it')
  expect(text).toContain(
    '  0.02 s   failed     qwen3:8b on rig after 14 ms: status 500: out of memory, tried elsewhere\n',
  )
  expect(text).toContain(
    '  0.02 s   placing    residency, 2 candidates (retry) -> start qwen3:8b on box (only_candidate)\n',
  )
  expect(text).toContain('rig  -  failed_before\n')
  expect(text).toContain('  0.02 s   loading    box, for 8.0 s, estimate 8.0 s (history of 4)\n')
  expect(text).toContain('done       200, 20 480 bytes, 1 retry\n')
  expect(text.indexOf('failed     ')).toBeLessThan(text.indexOf('(retry)'))
})

test('a node that could not be reached is what the request waits for, and then tried again there', () => {
  const waits = [
    ...ordinary().slice(0, 3),
    failed(15, 'rig'),
    placed(15, [eliminated('rig', 'unreachable')], HOLD, { cause: 'retry', attempt: 2 }),
    phase(15, 'held'),
  ]
  expect(explained(...waits)).toContain(
    'because  no node can serve qwen3:8b now: rig could not be reached or was still starting, and has not answered a poll since\n',
  )

  const served = explained(
    ...waits,
    placed(2_015, [], start('rig'), { cause: 'freed', attempt: 2 }),
    phase(2_015, 'prefill', { node: 'rig' }),
    settled(3_000, { outcome: outcome({ retries: 1 }) }),
  )
  expect(served).toContain('connect: connection refused, tried again there\n')
  expect(served).toContain('  0.01 s   placing    residency, 1 candidate (retry) -> hold\n')
  expect(served).toContain('  because  rig')
  expect(served).toContain(', after 2.0 s of waiting\n')
})

test('a held request that is still running says so, and how often nothing changed', () => {
  const hold = (atMs: number) => placed(atMs, [tooBig('pi')], HOLD, { cause: 'hold' })
  const text = explained(arrived(), placed(0, [tooBig('pi')], HOLD), hold(2_000), hold(4_000), phase(0, 'held'))

  expect(text).toContain('req_1   qwen3:8b   running   (held)')
  expect(text).toContain('-> hold, the same 2 times more')
  expect(text).toContain('held       until now')
  expect(text.endsWith('running    held\n')).toBe(true)
})

test('an end without an answer names status, code, phase and message', () => {
  const text = explained(
    arrived(),
    phase(0, 'held'),
    settled(30_000, {
      outcome: {
        end: 'expired',
        status: 503,
        code: 'no_capacity',
        message: 'Held for 30 s.',
        phase: 'held',
        bytes: 0,
        retries: 0,
      },
    }),
  )

  expect(text).toContain('503 in 30 s')
  expect(text).toContain('  30.00 s  expired    503, while held, no_capacity, Held for 30 s., 0 bytes\n')
})

test('several models of a chain are named beside the nodes, and the rest is counted', () => {
  const text = renderExplain(
    record({
      asked: { ...job(), model: 'smart', promptTokens: { value: 3, basis: 'counted' } },
      models: ['smart', 'qwen3:8b'],
      rounds: [
        round([ranked('rig', [0, 1]), eliminated('rig', 'memory_fit', { model: 'smart' })], start('rig'), {
          more: { ranked: 2, eliminated: { offline: 4 } },
        }),
      ],
    }),
  )

  expect(text).toContain('smart -> qwen3:8b')
  expect(text).toContain('8 candidates')
  expect(text).toContain('* rig qwen3:8b  0/1')
  expect(text).toContain('rig smart       -  memory_fit')
  expect(text).toContain('and 2 ranked and 4 offline')
})

test('no line is wider than it needs to be and none ends in blanks', () => {
  for (const line of explained(...ordinary()).split('\n')) expect(line).toBe(line.trimEnd())
})

test('calls of tools that were repaired are told at the end', () => {
  const text = explained(arrived(), settled(9_800, { outcome: outcome({ toolCallsRepaired: 1 }) }))

  expect(text).toContain(' bytes, 1 tool call repaired')
})
