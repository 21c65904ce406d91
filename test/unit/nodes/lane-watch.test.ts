import { expect, test } from 'bun:test'
import type { NodeReport } from '../../../src/domain/node'
import { createLaneWatch } from '../../../src/nodes/lane-watch'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from '../../../src/nodes/upstream'
import { nodeAt } from '../../fixtures/nodes/recorded'

const PICTURES = '/v1/images/generations'
const empty: NodeReport = { models: [], resident: [], canLoad: false, canUnload: false }

interface Sent {
  readonly status: number
  readonly path?: string
  /** What is asked for; of itself every request wants something else. */
  readonly wish?: string
  readonly form?: string
  /** The client's request, where it is sent to several servers. */
  readonly request?: string
  readonly at?: 'one' | 'two'
}

/** Two servers of different kinds. */
const servers = (report: () => Promise<NodeReport> = async () => empty) => {
  const watch = createLaneWatch()
  const kinds = { one: watch({ kind: 'openai', report } as never), two: watch({ kind: 'vllm', report } as never) }
  const node = (at: 'one' | 'two') => nodeAt(`http://${at}:8000/base`, 'openai')
  let count = 0
  const send = async ({ status, path = PICTURES, wish, form, request, at = 'one' }: Sent): Promise<void> => {
    count += 1
    const upstream = { send: async () => ({ status }) as UpstreamReply } as unknown as UpstreamClient
    const sent = {
      method: 'POST',
      url: `${node(at).url}${path}`,
      headers: form === undefined ? {} : { 'content-type': `multipart/form-data; boundary=${form}` },
      body: Buffer.from(wish ?? `wish ${count}`),
      sender: { call: { request: request ?? `req_${count}` }, sending: () => {} },
    } as unknown as UpstreamSend
    await kinds[at].send?.(sent, upstream)
  }
  return {
    sendAll: async (...all: readonly Sent[]): Promise<void> => {
      for (const one of all) await send(one)
    },
    down: async (at: 'one' | 'two' = 'one') =>
      (await kinds[at].report(node(at), {} as never, new AbortController().signal)).lanesDown as unknown,
  }
}

const failures = (count: number, more: Partial<Sent> = {}): Sent[] =>
  Array.from({ length: count }, () => ({ status: 500, ...more }))

test.each([
  [PICTURES, [501], ['image']],
  ['/v1/images/edits', [500, 502, 500], ['image']],
  ['/v1/audio/speech', [500, 500, 500], ['speech']],
  ['/v1/audio/transcriptions', [501], ['transcription']],
  ['/inference', [500, 500, 500], ['transcription']],
  ['/v1/videos', [500, 504, 500], ['video']],
  [PICTURES, [500, 500], undefined],
  [PICTURES, [500, 500, 200, 500], undefined],
  [PICTURES, [501, 200], undefined],
  [PICTURES, [503, 503, 503, 429, 400, 404], undefined],
  ['/v1/chat/completions', [500, 500, 500, 501], undefined],
])('%s after %p: %p', async (path, statuses, down) => {
  const { sendAll, down: downNow } = servers()
  await sendAll(...statuses.map((status) => ({ status, path })))
  expect(await downNow()).toEqual(down)
})

test('what the adapter itself reports as down stays so', async () => {
  const { sendAll, down } = servers(async () => ({ ...empty, lanesDown: ['speech', 'image'] }))
  await sendAll({ status: 501 })
  expect(await down()).toEqual(['speech', 'image'])
})

test('one wish that fails again and again takes no lane away, nor does a form whose boundary changes', async () => {
  const { sendAll, down } = servers()
  await sendAll(...failures(10, { wish: 'a bad size' }))
  for (const form of ['xx', 'yyy', 'zzzz', 'w'])
    await sendAll({ status: 500, path: '/v1/images/edits', form, wish: `--${form}\r\nsize: -1\r\n--${form}--` })
  expect(await down()).toBeUndefined()

  await sendAll(...failures(1))
  expect(await down()).toEqual(['image'])
})

test('a wish that is known to fail does not keep the lane away once it is tried again', async () => {
  const { sendAll, down } = servers()
  await sendAll({ status: 500, wish: 'bad' }, ...failures(1), { status: 200 }, ...failures(9, { wish: 'bad' }))
  expect(await down()).toBeUndefined()
})

test('requests that two servers fail on count for neither', async () => {
  const { sendAll, down } = servers()
  for (const request of ['req_a', 'req_b', 'req_c', 'req_d'])
    await sendAll({ status: 500, wish: request, request }, { status: 500, wish: request, request, at: 'two' })
  expect([await down(), await down('two')]).toEqual([undefined, undefined])
})

test('a lane that seemed down comes back when another server fails on the same request', async () => {
  const { sendAll, down } = servers()
  await sendAll(...failures(2), { status: 500, request: 'req_a' })
  expect(await down()).toEqual(['image'])

  await sendAll({ status: 500, request: 'req_a', at: 'two' })
  expect([await down(), await down('two')]).toEqual([undefined, undefined])
})

test('what another server could do counts against this one each time', async () => {
  const { sendAll, down } = servers()
  for (const request of ['req_a', 'req_b', 'req_c'])
    await sendAll({ status: 500, wish: 'fine', request }, { status: 200, wish: 'fine', request, at: 'two' })
  expect([await down(), await down('two')]).toEqual([['image'], undefined])
})

test('a server that was away and is back begins anew', async () => {
  let isAway = false
  const { sendAll, down } = servers(async () => {
    if (isAway) throw new Error('connection refused')
    return empty
  })
  await sendAll(...failures(3))
  expect(await down()).toEqual(['image'])

  isAway = true
  await expect(down()).rejects.toThrow('refused')
  isAway = false
  expect(await down()).toBeUndefined()
})
