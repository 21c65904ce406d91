import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Fact } from '../../src/domain/facts'
import { createJournal } from '../../src/observe/journal'
import { actorOf, COLD, idOf, onceOn, poison, runAll } from '../support/crashes'
import { host, resident } from '../support/host'

describe('BL-Y03 a request that breaks', () => {
  test('before its answer began: the client hears `internal`, the slot goes to the next', async () => {
    const h = host({ a: resident() })
    await h.ready()
    h.gateway.onForward = () => {
      h.gateway.onForward = () => {}
      throw new Error('injected')
    }

    const bad = h.submit()
    const next = h.submit()
    await h.clock.advance(20_000)
    await runAll(h)

    expect(await bad.outcome).toMatchObject({ error: { code: 'internal', details: { requestId: bad.job.id } } })
    expect(await next.outcome).toMatchObject({ reply: { status: 200 } })
    expect(h.settled()[0]).toMatchObject({ request: bad.job.id, outcome: { end: 'failed', status: 500, node: 'a' } })
    h.expectIdle()
  })

  test('in the middle of its answer: the stream is cut in-band, the end is `incomplete`', async () => {
    const h = host({ a: resident() })
    await h.ready()
    const bad = h.submit()
    await h.clock.advance(0)
    h.gateway.running[0]?.start()
    await h.clock.advance(0)

    poison(h.fleet.shared.requests.get(idOf(bad)), 'reply.finished')
    await h.clock.advance(1_000)

    expect(h.gateway.cuts).toMatchObject([{ request: bad.job.id, failure: { class: 'truncated' } }])
    expect(h.gateway.running).toEqual([])
    expect(h.settled()).toMatchObject([{ outcome: { end: 'incomplete', status: 200, code: 'internal' } }])
    h.expectIdle()
  })

  test('while it is bound, while its model loads, and in a guard', async () => {
    const h = host({ a: resident(), b: COLD }, { policy: { use: 'least-connections' } })
    await h.ready()
    const running = h.submit()
    const bound = h.submit()
    await h.clock.advance(0)
    poison(h.fleet.shared.requests.get(idOf(bound)), 'placement.refused')
    await h.clock.advance(0)
    expect(await bound.outcome).toMatchObject({ error: { code: 'internal' } })
    await runAll(h)
    expect(await running.outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
    expect(h.fleet.shared.desk.ledger.hasBound()).toBe(false)

    const late = host({ b: COLD })
    await late.ready()
    const loading = late.submit({ asked: 'x', models: ['x'] })
    await late.clock.advance(0)
    poison(late.fleet.shared.requests.get(idOf(loading)), 'placement.refused')
    late.gateway.loads[0]?.done()
    await late.clock.advance(0)
    expect(await loading.outcome).toMatchObject({ error: { code: 'internal' } })
    late.expectIdle()

    const { outcome, job } = h.submit()
    await h.clock.advance(0)
    const request = h.fleet.shared.requests.get(idOf({ job }))?.getSnapshot().context as { ports: unknown }
    request.ports = undefined
    h.gateway.running[0]?.fail()
    await h.clock.advance(20_000)
    expect(await outcome).toMatchObject({ error: { code: 'internal' } })
    h.expectIdle()
  })

  test('their supervisor breaks: requests go on, are reaped, and a drain still ends', async () => {
    const h = host({ a: resident() })
    await h.ready()
    const running = h.submit()
    await h.clock.advance(0)
    poison(actorOf(h, 'requests'), 'request.submit')
    expect(h.of('actor.failed')).toMatchObject([{ actor: 'requests', restarted: true }])
    const stopping = h.fleet.stop(1_000)
    poison(actorOf(h, 'requests'), 'requests.replace')
    poison(actorOf(h, 'requests'), 'xstate.error.actor.x')
    await h.clock.advance(0)
    await runAll(h)

    expect(await running.outcome).toMatchObject({ reply: { status: 200 } })
    expect(await stopping).toEqual({ cut: 0 })
    expect(await h.submit().outcome).toMatchObject({ error: { code: 'draining' } })
  })

  test('on a job that their supervisor could not take: the caller hears `internal`', async () => {
    const h = host({ a: resident() }, { record: onceOn(({ type }) => type === 'request.arrived') })
    await h.ready()

    expect(await h.submit().outcome).toMatchObject({ error: { code: 'internal' } })
    expect(h.of('actor.failed')).toMatchObject([{ actor: 'requests', restarted: true }])
    const { outcome } = h.submit()
    await h.clock.advance(0)
    await runAll(h)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
  })
})

describe('BL-Y03 whoever watches and throws', () => {
  test('an inspector is dropped, and nothing that it watched notices', async () => {
    const h = host({ a: resident() })
    await h.ready()
    let heard = 0
    h.fleet.root.system.inspect(() => {
      heard += 1
      throw new Error('inspector')
    })

    const { outcome } = h.submit()
    await h.clock.advance(0)
    await runAll(h)

    expect(heard).toBe(1)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(h.of('actor.failed')).toMatchObject([{ actor: 'inspector', message: 'Error: inspector' }])
    h.expectIdle()
  })

  test('a sink of the journal is counted, the others and the request go on', async () => {
    const kept: Fact[] = []
    const journal = createJournal([
      {
        name: 'broken',
        hear: () => {
          throw new Error('sink')
        },
      },
      { name: 'kept', hear: (fact) => void kept.push(fact) },
    ])
    const h = host({ a: resident() }, { record: (fact) => journal.record(fact) })
    await h.ready()

    const { outcome } = h.submit()
    await h.clock.advance(0)
    await runAll(h)

    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(journal.failures().broken).toBeGreaterThan(5)
    expect(kept.filter(({ type }) => type === 'actor.failed')).toHaveLength(1)
    expect(kept.filter(({ type }) => type === 'request.settled')).toHaveLength(1)
  })

  test('a subscriber ends neither the process nor an answer', async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, '../support/throwing-subscriber.ts')], {
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const out = await new Response(child.stdout).text()

    expect(await child.exited).toBe(0)
    expect(out).toContain('told: subscriber')
    expect(out).toContain('answered: true')
  }, 20_000)
})
