import { describe, expect, test } from 'bun:test'
import type { RouterError } from '../../src/domain/errors'
import { createSamples } from '../../src/learning/service-times'
import { host, resident } from '../support/host'

const measured = (...of: readonly { readonly node: string; readonly ms: number; readonly times?: number }[]) => {
  const samples = createSamples()
  for (const { node, ms, times = 5 } of of) {
    for (let at = 0; at < times; at++) samples.addService({ node, model: 'm', durationMs: ms, firstByteMs: 10 })
  }
  return samples
}

const errorOf = async (outcome: Promise<unknown>): Promise<RouterError> =>
  ((await outcome) as { error: RouterError }).error

describe('a deadline', () => {
  test('that the answer alone would miss is refused before anything is sent, and the record has the estimate', async () => {
    const fleet = host({ a: resident() }, { samples: measured({ node: 'a', ms: 10_000 }) })
    await fleet.ready()

    const { outcome, job } = fleet.submit({ deadlineAt: fleet.clock.now() + 5_000 })

    const error = await errorOf(outcome)
    expect(error.code).toBe('deadline_exceeded')
    expect(error.message).toContain('about 10 s (0 s until a slot is free, 10 s to answer; measured over 5 answers)')
    expect(fleet.gateway.running).toEqual([])
    expect(fleet.of('request.placed')).toMatchObject([
      { request: job.id, estimate: { valueMs: 10_000, basis: 'measured', samples: 5 } },
    ])
    expect(fleet.settled()).toMatchObject([{ outcome: { end: 'expired', status: 504, code: 'deadline_exceeded' } }])
    fleet.expectIdle()
  })

  test('that it can keep is no hindrance, and the record has the estimate too', async () => {
    const fleet = host({ a: resident() }, { samples: measured({ node: 'a', ms: 10_000 }) })
    await fleet.ready()

    fleet.submit({ deadlineAt: fleet.clock.now() + 10_000 })
    await fleet.clock.advance(1)

    expect(fleet.gateway.running).toHaveLength(1)
    expect(fleet.of('request.placed')).toMatchObject([{ estimate: { valueMs: 10_000 } }])
  })

  test('counts what is left of those that run and all that wait before it', async () => {
    const fleet = host({ a: resident() }, { samples: measured({ node: 'a', ms: 10_000 }) })
    await fleet.ready()
    fleet.submit()
    await fleet.clock.advance(4_000)
    fleet.submit()
    await fleet.clock.advance(1)

    const late = fleet.submit({ deadlineAt: fleet.clock.now() + 25_000 })
    const early = fleet.submit({ deadlineAt: fleet.clock.now() + 27_000 })
    await fleet.clock.advance(1)

    expect((await errorOf(late.outcome)).message).toContain('(16 s until a slot is free, 10 s to answer')
    expect(fleet.of('request.placed').at(-1)).toMatchObject({ request: early.job.id, decision: { kind: 'wait' } })
  })

  test('as long as one node was not measured, nobody is refused on a guess', async () => {
    const fleet = host({ a: resident(), b: resident() }, { samples: measured({ node: 'a', ms: 10_000 }) })
    await fleet.ready()

    fleet.submit({ deadlineAt: fleet.clock.now() + 5_000 })
    await fleet.clock.advance(1)

    expect(fleet.gateway.running).toHaveLength(1)
    expect(fleet.of('request.placed')[0]).not.toHaveProperty('estimate')
  })

  test('two answers are no measurement', async () => {
    const fleet = host({ a: resident() }, { samples: measured({ node: 'a', ms: 10_000, times: 2 }) })
    await fleet.ready()

    fleet.submit({ deadlineAt: fleet.clock.now() + 5_000 })
    await fleet.clock.advance(1)

    expect(fleet.gateway.running).toHaveLength(1)
  })

  test('the faster of two nodes decides', async () => {
    const samples = measured({ node: 'a', ms: 10_000 }, { node: 'b', ms: 1_000 })
    const fleet = host({ a: resident(), b: resident() }, { samples })
    await fleet.ready()

    fleet.submit({ deadlineAt: fleet.clock.now() + 5_000 })
    await fleet.clock.advance(1)

    expect(fleet.gateway.running).toHaveLength(1)
  })

  test('a load that was measured counts, one that was not keeps it from being refused', async () => {
    const cold = { models: [{ name: 'm' }], resident: [], canLoad: true, canUnload: false }
    const samples = measured({ node: 'a', ms: 1_000 })
    const fleet = host({ a: cold }, { samples })
    await fleet.ready()
    const first = fleet.submit({ deadlineAt: fleet.clock.now() + 5_000 })
    await fleet.clock.advance(1)
    expect(fleet.gateway.loads).toHaveLength(1)
    first.leave()

    const warm = host({ a: cold }, { samples })
    samples.addLoad('a', 'm', 8_000)
    await warm.ready()
    const second = warm.submit({ deadlineAt: warm.clock.now() + 5_000 })
    await warm.clock.advance(1)

    expect((await errorOf(second.outcome)).message).toContain('8 s until a slot is free')
    expect(warm.gateway.loads).toEqual([])
  })

  test('that passes while waiting ends it exactly then', async () => {
    const fleet = host({ a: resident() })
    await fleet.ready()
    fleet.submit()
    await fleet.clock.advance(1)
    const deadlineAt = fleet.clock.now() + 5_000
    const { job } = fleet.submit({ deadlineAt })
    await fleet.clock.advance(60_000)

    expect(fleet.settled()).toMatchObject([
      { request: job.id, at: deadlineAt, outcome: { end: 'expired', status: 504 } },
    ])
  })
})
