import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../src/domain/errors'
import { noteOf, waitingBody, within } from '../../src/http/patience'
import type { Reply } from '../../src/ports/node-gateway'
import { VirtualClock } from '../../src/sim/virtual-clock'
import type { Exchange } from '../../src/wire/exchange'
import { testJob } from '../support/host'
import { bytes, record } from './harness'

const text = (chunk: Uint8Array | undefined) => (chunk === undefined ? undefined : new TextDecoder().decode(chunk))

const setUp = () => {
  const clock = new VirtualClock()
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const left: number[] = []
  let waits = 0
  const exchange = {
    job: testJob({ id: 'req_1' }),
    keepAlive: (note = '') => bytes(`:${note}`),
    inBandError: (error: RouterError) => bytes(`!${error.code} ${error.details.requestId}`),
  } as unknown as Exchange & { keepAlive: NonNullable<Exchange['keepAlive']> }
  const body = waitingBody({
    exchange,
    submitted: promise,
    clock,
    note: () => String(++waits),
    left: () => left.push(clock.now()),
  })
  const reader = body.getReader()
  const next = async () => text((await reader.read()).value)
  return { clock, resolve, reject, reader, next, left }
}

describe('the body of an answer that has not begun', () => {
  test('is one comment at once and one every 5 s, never more than is read', async () => {
    const { clock, next } = setUp()

    expect(await next()).toBe(':1')
    const second = next()
    await clock.advance(4_999)
    expect(await Promise.race([second, Promise.resolve('nothing')])).toBe('nothing')
    await clock.advance(1)
    expect(await second).toBe(':2')

    // Nobody reads for a minute: what it says then is of then, and nothing has piled up.
    await clock.advance(60_000)
    const third = next()
    await clock.advance(5_000)
    expect(await third).toBe(':3')
  })

  test('goes on with the answer as soon as that begins, and ends with it', async () => {
    const { resolve, next } = setUp()
    await next()
    const first = next()

    resolve({ status: 200, headers: {}, body: new Response('abc').body as ReadableStream<Uint8Array> })

    expect(await first).toBe('abc')
    expect(await next()).toBeUndefined()
  })

  test('takes an answer that came whole', async () => {
    const { resolve, next } = setUp()
    await next()
    resolve({ status: 200, headers: {}, body: bytes('whole') })

    expect(await next()).toBe('whole')
    expect(await next()).toBeUndefined()
  })

  test('ends with the error as an event', async () => {
    const { reject, next } = setUp()
    await next()
    reject(new RouterError('no_capacity', 'none'))

    expect(await next()).toBe('!no_capacity req_1')
    expect(await next()).toBeUndefined()
  })

  test('a client that reads no more is told of once', async () => {
    const { reader, next, left } = setUp()
    await next()
    await reader.cancel()

    expect(left).toHaveLength(1)
  })
})

test('a reply within the time is the reply, a later one is not waited for, an early error is thrown', async () => {
  const clock = new VirtualClock()
  const reply: Reply = { status: 200, headers: {}, body: bytes('') }
  const never = within(new Promise<Reply>(() => {}), 100, clock)
  await clock.advance(100)

  expect(await never).toBeUndefined()
  expect(await within(Promise.resolve(reply), 100, clock)).toBe(reply)
  expect(within(Promise.reject(new RouterError('queue_full', 'full')), 100, clock)).rejects.toThrow('full')
})

test.each([
  [[], 'choosing a node, 12 s'],
  [[{ name: 'held', fromMs: 0 }], 'waiting for a node, 12 s'],
  [[{ name: 'waiting', fromMs: 0, node: 'box-2' }], 'waiting for a slot on box-2, 12 s'],
  [[{ name: 'loading', fromMs: 0, node: 'a\nb' }], 'loading qwen on a b, 12 s'],
] as const)('what is waited for is one line: %j', (phases, note) => {
  expect(noteOf({ ...record('req_1'), phases }, 12_000)).toBe(note)
})
