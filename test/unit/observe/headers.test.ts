import { expect, test } from 'bun:test'
import { printable, replyHeaders } from '../../../src/observe/headers'
import { eliminated, outcome, ranked, record, round, start, tooBig } from './builders'

const resident = record({
  rounds: [round([ranked('rig', [0, 0, 0]), ranked('box', [0, 0, 1]), tooBig('pi')], start('rig'))],
  phases: [
    { name: 'placing', fromMs: 0, toMs: 0.4 },
    { name: 'held', fromMs: 0.4, toMs: 860 },
    { name: 'waiting', node: 'rig', fromMs: 860, toMs: 1_860.4 },
    { name: 'prefill', node: 'rig', fromMs: 1_860.4 },
  ],
})

test('what is known when the answer begins', () => {
  expect(replyHeaders(resident)).toEqual({
    'X-Request-Id': 'req_1',
    'X-Fleet-Node': 'rig',
    'X-Fleet-Model': 'qwen3:8b',
    'X-Fleet-Why': 'resident',
    'X-Fleet-Residency': 'resident',
    'X-Fleet-Score': '0/0/0; of=3; ranked=2; next=box:0/0/1',
    'Server-Timing': 'placing;dur=0.4, waiting;dur=1860, loading;dur=0',
  })
})

test('the terms of the chosen one on demand', () => {
  expect(replyHeaders(resident, { explain: true })['X-Fleet-Signals']).toBe('tier=resident, in_flight=0')
})

test('a cold load names what it drops and is cold', () => {
  const headers = replyHeaders(
    record({
      rounds: [
        round([ranked('box', 103)], {
          kind: 'load',
          node: 'box',
          model: 'qwen3:8b',
          evicts: ['a', 'b'],
          reason: 'cold_load',
        }),
      ],
    }),
  )

  expect(headers).toMatchObject({
    'X-Fleet-Why': 'cold_load; evicts=a,b',
    'X-Fleet-Residency': 'cold',
    'X-Fleet-Score': '103; of=1; ranked=1',
  })
})

test('retries and fallbacks say where from', () => {
  const failure = {
    node: 'rig',
    model: 'm',
    atMs: 1,
    class: 'reset',
    message: 'x',
    bytes: 0,
    elapsedMs: 1,
    retried: true,
  }
  const retried = record({ rounds: [round([ranked('box', [0])], start('box'))], failures: [failure] })
  const fallback = record({ models: ['smart', 'qwen3:8b'], rounds: [round([ranked('box', [0])], start('box'))] })

  expect(replyHeaders(retried)).toMatchObject({ 'X-Fleet-Why': 'retried; from=rig', 'X-Fleet-Retries': '1' })
  expect(replyHeaders(fallback)).toMatchObject({ 'X-Fleet-Why': 'fallback; from=smart' })
  expect(replyHeaders(fallback)).not.toHaveProperty('X-Fleet-Retries')
})

test('counts include the candidates that the record does not keep', () => {
  const cut = record({
    rounds: [round([ranked('rig', [0])], start('rig'), { more: { ranked: 4, eliminated: { offline: 2, role: 1 } } })],
  })

  expect(replyHeaders(cut)['X-Fleet-Score']).toBe('0; of=8; ranked=5')
})

test('a request without a node has no node headers', () => {
  const refused = record({
    rounds: [round([eliminated('rig', 'offline')], { kind: 'hold', reason: 'held' })],
    outcome: { end: 'rejected', status: 503, phase: 'held', bytes: 0, retries: 0, totalMs: 1 },
  })

  expect(Object.keys(replyHeaders(refused))).toEqual(['X-Request-Id', 'X-Fleet-Why', 'Server-Timing'])
})

test('every value is accepted by the platform, whatever the names are', () => {
  const name = 'büro \u{1f5a5} \ud800 \r\n\0 end'
  const odd = record({
    asked: { ...resident.asked, model: name },
    models: [name],
    rounds: [round([ranked(name, [0], { model: name })], start(name, { model: name }))],
    outcome: { ...outcome({ node: name, model: name }), totalMs: 1 },
  })

  const headers = replyHeaders(odd, { explain: true })

  for (const value of Object.values(headers)) expect(value).toMatch(/^[\x20-\x7e]+$/)
  expect(() => new Response('', { headers })).not.toThrow()
  expect(headers['X-Fleet-Node']).toBe('b%C3%BCro %F0%9F%96%A5 %EF%BF%BD %0D%0A%00 end')
})

test('a value is never longer than a header should be', () => {
  expect(printable('x'.repeat(10_000)).length).toBeLessThan(600)
})
