import { describe, expect, test } from 'bun:test'
import type { Fact, Outcome, PhaseName } from '../../../src/domain/facts'
import type { Job } from '../../../src/domain/job'
import { learnFrom } from '../../../src/learning/learn'
import { createSamples } from '../../../src/learning/service-times'
import { testJob } from '../../support/host'

const learner = () => {
  const samples = createSamples()
  const { hear } = learnFrom(samples)
  const arrive = (id: string, change: Partial<Job> = {}) => {
    const job = testJob({ id, ...change })
    hear({ type: 'request.arrived', at: job.arrivedAt, job })
  }
  const phase = (request: string, at: number, name: PhaseName) =>
    hear({ type: 'request.phase', at, request, phase: name, node: 'rig', model: 'M:latest' })
  const settle = (request: string, at: number, outcome: Partial<Outcome>, over: Partial<Fact> = {}) =>
    hear({
      type: 'request.settled',
      at,
      request,
      dialect: 'openai',
      asked: 'm',
      priority: 'normal',
      residency: 'resident',
      arrivedAt: 0,
      outcome: {
        end: 'completed',
        status: 200,
        node: 'rig',
        model: 'M:latest',
        phase: 'generating',
        bytes: 1,
        retries: 0,
        ...outcome,
      },
      ...over,
    } as Fact)
  return { samples, hear, arrive, phase, settle }
}

describe('a completed answer', () => {
  test('is a sample of how long it took, how fast the prompt was read and how fast it was written', () => {
    const { samples, arrive, phase, settle } = learner()
    arrive('a', { promptBytes: 1_500 })
    phase('a', 1_000, 'prefill')
    phase('a', 2_000, 'generating')
    settle('a', 5_000, { serviceMs: 4_000, firstByteMs: 1_000, tokensIn: 500, tokensOut: 91 })

    expect(samples.service('rig', 'm')).toEqual({ meanMs: 4_000, samples: 1 })
    expect(samples.prefill('rig', 'm')).toEqual({ perSecond: 500, samples: 1 })
    expect(samples.decode('rig', 'm', 1)).toEqual({ perSecond: 30, samples: 1 })
    expect(samples.bytesPerToken('m')).toBe(3)
  })

  test('that ran with others is a sample of that many at once', () => {
    const { samples, arrive, phase, settle } = learner()
    for (const id of ['a', 'b', 'c']) {
      arrive(id)
      phase(id, 0, 'prefill')
    }
    for (const id of ['a', 'b', 'c']) phase(id, 1_000, 'generating')
    for (const id of ['a', 'b', 'c']) settle(id, 4_000, { serviceMs: 4_000, firstByteMs: 1_000, tokensOut: 31 })

    expect(samples.learned('rig').models[0]?.decode).toEqual([{ concurrency: 3, perSecond: 10, samples: 3 }])
  })

  test('on an engine that runs one at a time counts from the previous completion', () => {
    const { samples, arrive, phase, settle } = learner()
    samples.parallelism.trying('rig', 'm')
    for (const id of ['a', 'b']) {
      arrive(id)
      phase(id, 0, 'prefill')
    }
    phase('a', 100, 'generating')
    settle('a', 5_000, { serviceMs: 5_000, firstByteMs: 100 })
    phase('b', 5_100, 'generating')
    settle('b', 10_000, { serviceMs: 10_000, firstByteMs: 5_100 })

    expect(samples.service('rig', 'm')).toEqual({ meanMs: 5_000, samples: 2 })
  })

  test('that came whole says nothing of either speed', () => {
    const { samples, arrive, phase, settle } = learner()
    arrive('a', { stream: false })
    phase('a', 0, 'prefill')
    phase('a', 3_999, 'generating')
    settle('a', 4_000, { serviceMs: 4_000, firstByteMs: 3_999, tokensIn: 500, tokensOut: 91 })

    expect(samples.learned('rig').models[0]).toEqual({
      model: 'm',
      service: { meanMs: 4_000, samples: 1, p75Ms: 4_000 },
      decode: [],
      parallelism: { overlapping: 0, together: 0, stood: 0, mayTry: false, trying: false },
    })
  })

  test('after a load says nothing of reading the prompt', () => {
    const { samples, arrive, settle } = learner()
    arrive('a')
    settle('a', 9_000, { serviceMs: 9_000, firstByteMs: 8_000, tokensIn: 500 }, { residency: 'cold' } as Partial<Fact>)

    expect(samples.service('rig', 'm')?.samples).toBe(1)
    expect(samples.prefill('rig', 'm')).toBeUndefined()
  })

  test('to a prompt with pictures says nothing of bytes and tokens', () => {
    const { samples, arrive, settle } = learner()
    arrive('a', { promptBytes: 1_500, needs: ['chat', 'vision'] })
    settle('a', 9_000, { serviceMs: 900, firstByteMs: 100, tokensIn: 1_200 })

    expect(samples.bytesPerToken('m')).toBeUndefined()
  })
})

test.each(['incomplete', 'failed', 'client_disconnected', 'rejected', 'expired'] as const)(
  'BL-S07 an answer that ended otherwise is no sample: %s',
  (end) => {
    const { samples, arrive, phase, settle } = learner()
    arrive('a', { promptBytes: 1_500 })
    phase('a', 0, 'prefill')
    phase('a', 100, 'generating')
    settle('a', 900, { end, serviceMs: 900, firstByteMs: 100, tokensIn: 500, tokensOut: 91 })

    expect(samples.size()).toBe(0)
    expect(samples.p75('rig', 'm')).toBeUndefined()
    expect(samples.bytesPerToken('m')).toBeUndefined()
  },
)

test('another server under the same name is nobody that anything is known of', () => {
  const { samples, hear, arrive, phase, settle } = learner()
  arrive('a')
  phase('a', 0, 'prefill')
  phase('a', 100, 'generating')
  settle('a', 1_100, { serviceMs: 1_100, firstByteMs: 100, tokensOut: 11 })
  const changed = { type: 'node.changed', at: 2_000, node: 'rig', kind: 'ollama', url: 'http://rig' } as const
  hear({ ...changed, replaced: false })
  expect(samples.learned('rig').samples).toBe(1)

  hear({ ...changed, replaced: true })
  expect(samples.learned('rig')).toEqual({ samples: 0, models: [] })
  expect(samples.p75('rig', 'm')).toBeUndefined()
})

test('a request that failed on one node is inside the other one only', () => {
  const { samples, hear, arrive, phase, settle } = learner()
  arrive('a')
  phase('a', 0, 'prefill')
  const failure = { class: 'reset' as const, message: 'gone', bytes: 0, elapsedMs: 50 }
  hear({ type: 'attempt.failed', at: 50, request: 'a', node: 'rig', model: 'm', attempt: 1, failure, retried: true })
  hear({ type: 'request.phase', at: 60, request: 'a', phase: 'prefill', node: 'box', model: 'm' })
  arrive('b')
  phase('b', 100, 'prefill')
  phase('b', 200, 'generating')
  settle('b', 1_200, { serviceMs: 1_100, firstByteMs: 100, tokensOut: 11 })

  expect(samples.learned('rig').models[0]?.decode).toEqual([{ concurrency: 1, perSecond: 10, samples: 1 }])
})
