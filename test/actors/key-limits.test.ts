import { describe, expect, test } from 'bun:test'
import type { KeyConfig } from '../../src/domain/config'
import type { RouterError } from '../../src/domain/errors'
import { host, resident, testConfig, testNode } from '../support/host'

const keyed = (more: Partial<KeyConfig>): KeyConfig => ({ name: 'k', sha256: 'ab', scopes: ['inference'], ...more })
const auth = (...keys: KeyConfig[]) => ({ mode: 'keys', keys }) as never
const busy = () => resident('m', 10)

const errorOf = async (outcome: Promise<unknown>): Promise<RouterError> =>
  ((await outcome) as { error: RouterError }).error

describe('requests at once', () => {
  test('are refused beyond the limit of the key, not of others, and counted off once, however they end', async () => {
    const fleet = host({ a: busy() }, { auth: auth(keyed({ limits: { concurrent: 1 } }), keyed({ name: 'other' })) })
    await fleet.ready()

    for (const end of ['finish', 'fail', 'leave', 'reject'] as const) {
      const first = fleet.submit({ key: 'k' })
      await fleet.clock.advance(1)
      const refused = fleet.submit({ key: 'k' })
      const other = fleet.submit({ key: 'other' })
      await fleet.clock.advance(1)

      expect(await errorOf(refused.outcome)).toMatchObject({
        code: 'queue_full',
        details: { retryAfterSeconds: 10, requestId: refused.job.id },
      })
      expect(fleet.fleet.running('k')).toBe(1)
      expect(fleet.fleet.running('other')).toBe(1)
      const [own, others] = [...fleet.gateway.running]
      if (end === 'finish') own?.start()
      if (end === 'leave') first.leave()
      else if (end === 'reject') own?.reject(400)
      else if (end === 'fail') {
        // Nobody else can take it, so it fails for good.
        own?.fail()
      } else own?.finish()
      others?.start()
      others?.finish()
      await fleet.clock.advance(60_000)
      await Promise.all([first.outcome, other.outcome])
      expect(fleet.fleet.running('k')).toBe(0)
    }
    fleet.expectIdle()
  })

  test('a refusal is recorded with its key and its one terminal status', async () => {
    const fleet = host({ a: busy() }, { auth: auth(keyed({ limits: { concurrent: 1 } })) })
    await fleet.ready()
    fleet.submit({ key: 'k' })
    await fleet.clock.advance(1)
    const { job } = fleet.submit({ key: 'k' })
    await fleet.clock.advance(1)

    expect(fleet.settled()).toMatchObject([
      { request: job.id, key: 'k', outcome: { end: 'rejected', status: 429, code: 'queue_full' } },
    ])
  })
})

describe('requests a minute', () => {
  test('beyond the limit wait for the bucket', async () => {
    const fleet = host({ a: busy() }, { auth: auth(keyed({ limits: { requestsPerMinute: 6 } })) })
    fleet.gateway.onForward = (running) => {
      running.start()
      running.finish()
    }
    await fleet.ready()

    for (let at = 0; at < 6; at++) expect(await fleet.submit({ key: 'k' }).outcome).toHaveProperty('reply')
    expect(await errorOf(fleet.submit({ key: 'k' }).outcome)).toMatchObject({
      code: 'queue_full',
      details: { retryAfterSeconds: 10 },
    })
    await fleet.clock.advance(9_000)
    expect(await errorOf(fleet.submit({ key: 'k' }).outcome)).toMatchObject({ details: { retryAfterSeconds: 1 } })
    await fleet.clock.advance(1_000)
    expect(await fleet.submit({ key: 'k' }).outcome).toHaveProperty('reply')
  })

  test('a key without a limit of its own has that of [limits], and no key at all has none', async () => {
    const fleet = host({ a: busy() }, { auth: auth(keyed({})), limits: { requestsPerMinute: 1 } as never })
    fleet.gateway.onForward = (running) => {
      running.start()
      running.finish()
    }
    await fleet.ready()

    expect(await fleet.submit({ key: 'k' }).outcome).toHaveProperty('reply')
    expect(await errorOf(fleet.submit({ key: 'k' }).outcome)).toMatchObject({ code: 'queue_full' })
    for (let at = 0; at < 3; at++) expect(await fleet.submit().outcome).toHaveProperty('reply')
  })

  test('another limit holds from the next request on', async () => {
    const fleet = host({ a: busy() }, { auth: auth(keyed({ limits: { requestsPerMinute: 1 } })) })
    await fleet.ready()
    fleet.submit({ key: 'k' })
    expect(await errorOf(fleet.submit({ key: 'k' }).outcome)).toMatchObject({ code: 'queue_full' })

    fleet.fleet.configure(testConfig({ nodes: [testNode('a')] as never, auth: auth(keyed({})) }))
    fleet.submit({ key: 'k' })
    await fleet.clock.advance(1)

    expect(fleet.gateway.running).toHaveLength(2)
  })
})

test('a model that the key may not use is forbidden, and nothing is placed', async () => {
  const fleet = host({ a: busy() }, { auth: auth(keyed({ models: ['*', '!m'] })) })
  await fleet.ready()

  const { outcome, job } = fleet.submit({ key: 'k' })

  expect(await errorOf(outcome)).toMatchObject({ code: 'forbidden', details: { param: 'model' } })
  expect(fleet.of('request.placed')).toEqual([])
  expect(fleet.settled()).toMatchObject([{ request: job.id, outcome: { end: 'rejected', status: 403 } }])
})

test('engine time counts from each sending, over all attempts', async () => {
  const fleet = host({ a: busy(), b: busy() })
  await fleet.ready()
  fleet.submit({ key: 'k' })
  await fleet.clock.advance(2_000)
  fleet.gateway.running[0]?.fail()
  await fleet.clock.advance(3_000)
  fleet.gateway.running[0]?.start()
  fleet.gateway.running[0]?.finish()

  expect(fleet.settled()).toMatchObject([{ key: 'k', outcome: { retries: 1, engineMs: 5_000 } }])
})

test('a client that has its headers got status 200, whatever comes', async () => {
  const fleet = host({ a: new Error('away') })
  await fleet.ready()
  const { job } = fleet.submit()
  await fleet.clock.advance(1_000)
  fleet.fleet.headersSent(job.id)
  await fleet.clock.advance(60_000)

  expect(fleet.settled()).toMatchObject([{ outcome: { end: 'expired', status: 200, code: 'no_capacity' } }])
})
