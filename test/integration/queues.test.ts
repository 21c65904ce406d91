import { expect, test } from 'bun:test'
import type { NodeView } from '../../src/ports/fleet'
import { fastModel, type Json, slowModel, until } from '../support/fakes'
import { quietly } from './clients'

const drain = async (reply: Response | Promise<Response>): Promise<number> => {
  const answer = await reply
  await answer.text()
  return answer.status
}

const retryAfter = (reply: Response): number => Number(reply.headers.get('retry-after'))

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0

test(
  'BL-Q05 the sixth of five slots waits; beyond the bound it is 429 with Retry-After',
  () =>
    quietly(
      // What the second half asks for outlasts it: no slot comes free in between.
      [{ kind: 'llamacpp', slots: 5, answerTokens: 400, models: [slowModel()] }],
      { limits: { waitingPerModel: 100 } },
      async ({ chat, json, router, idle }) => {
        const first = Array.from({ length: 6 }, () => drain(chat({ more: { max_tokens: 4 } })))
        await until(() => router.fleet.waiters().length === 1)
        const { waiters } = (await json('/api/v1/queues')) as Json
        expect(waiters).toMatchObject([{ kind: 'waiting', reason: 'busy', node: 'a', position: 1 }])
        expect(await Promise.all(first)).toEqual(Array(6).fill(200))

        const leave = new AbortController()
        let refused = 0
        const rest = Array.from({ length: 250 }, async () => {
          const reply = await chat({ signal: leave.signal }).catch(() => undefined)
          if (reply === undefined) return
          if (reply.status === 429) {
            refused += 1
            expect(retryAfter(reply)).toBeGreaterThanOrEqual(1)
            expect(await reply.json()).toMatchObject({
              error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
            })
          } else await reply.text().catch(() => {})
        })
        await until(() => refused >= 145)
        expect(router.fleet.overview().waiting).toBe(100)
        const positions = router.fleet.waiters().map(({ position }) => position)
        expect(positions).toEqual(positions.map((_, at) => at + 1))
        leave.abort()
        await Promise.all(rest)
        expect(refused).toBe(145)
        await idle()
      },
    ),
  10_000,
)

test(
  'BL-Q05 Retry-After is near the real wait, measured over HTTP',
  () =>
    quietly(
      [{ kind: 'llamacpp', slots: 1, answerTokens: 64, models: [fastModel('m', { decodePerSecond: 32 })] }],
      { limits: { waitingPerModel: 1 } },
      async ({ chat, router, idle }) => {
        await drain(chat())
        const leave = new AbortController()
        const ratios: number[] = []
        for (let round = 0; round < 2; round++) {
          const held = Array.from({ length: round === 0 ? 2 : 1 }, () =>
            drain(chat({ signal: leave.signal })).catch(() => 0),
          )
          await until(() => router.fleet.overview().waiting === 1)
          const open: { readonly at: number; readonly seconds: number }[] = []
          while (router.fleet.overview().waiting === 1) {
            const at = performance.now()
            const reply = await chat()
            // The place may have become free on the way.
            if (reply.status !== 429) {
              await reply.body?.cancel()
              break
            }
            open.push({ at, seconds: retryAfter(reply) })
            await Bun.sleep(100)
          }
          const now = performance.now()
          for (const { at, seconds } of open) ratios.push((now - at) / 1_000 / seconds)
          if (round === 1) leave.abort()
          void held
        }
        leave.abort()

        expect(ratios.length).toBeGreaterThan(20)
        expect(ratios.every(Number.isFinite)).toBe(true)
        expect(median(ratios)).toBeGreaterThanOrEqual(0.5)
        expect(median(ratios)).toBeLessThanOrEqual(2)
        await idle()
      },
    ),
  15_000,
)

test(
  "BL-H09 our own refusals, the client's errors and its leaving are no failures of the node",
  () =>
    quietly(
      [{ kind: 'llamacpp', slots: 1, answerTokens: 10, models: [slowModel()] }],
      { limits: { waitingPerModel: 2 } },
      async ({ chat, json, of, idle, router, fakes }) => {
        const leave = new AbortController()
        const busy = chat({ signal: leave.signal })
        await until(() => fakes[0]?.running() === 1)
        const waiting = [chat(), chat()]
        await until(() => router.fleet.overview().waiting === 2)

        for (let at = 0; at < 20; at++) {
          const reply = await chat()
          expect(reply.status).toBe(429)
          expect(retryAfter(reply)).toBeGreaterThanOrEqual(1)
          await reply.json()
        }
        expect(await drain(chat({ more: { messages: 'not a list' } }))).toBe(400)
        await (await busy).body?.cancel()
        leave.abort()

        // Free again: whoever waits starts at once.
        const freed = performance.now()
        await until(() => router.fleet.overview().waiting === 1)
        expect(performance.now() - freed).toBeLessThan(500)
        for (const reply of waiting) expect(await drain(reply)).toBe(200)
        expect(await drain(chat())).toBe(200)
        const { nodes } = (await json('/api/v1/nodes')) as { nodes: NodeView[] }
        expect(nodes[0]).toMatchObject({ state: 'online', breaker: 'closed' })
        expect([...of('attempt.failed'), ...of('node.breaker')]).toEqual([])
        await idle()
      },
    ),
  10_000,
)

test('BL-Q08 both breakers open, one may be tried soon: the request is held, is that try, and is answered', () =>
  quietly([{ kind: 'llamacpp' }, { kind: 'llamacpp' }], { health: { breakerRetryMs: 400 } }, async (bench) => {
    const { fakes, chat, of, router, idle } = bench
    for (const fake of fakes) fake.faults.add({ type: 'status', status: 500 })
    while (of('node.breaker').length < 2) await drain(chat())
    for (const fake of fakes) fake.faults.clear()

    const reply = chat()
    await until(() => router.fleet.waiters().length === 1)
    expect(router.fleet.waiters()).toMatchObject([{ kind: 'held', reason: 'breaker_open' }])

    expect(await drain(reply)).toBe(200)
    expect(of('node.breaker').map(({ breaker }) => breaker)).toContain('closed')
    await idle()
  }))
