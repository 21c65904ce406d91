import { expect, test } from 'bun:test'
import { followJob } from '../../../src/nodes/follow-job'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from '../../../src/nodes/upstream'
import { NodeFault } from '../../../src/ports/node-gateway'

type Answer = { readonly status: number; readonly body?: unknown } | NodeFault

const follow = followJob({
  url: (submitted, id) => `${submitted}/${id}`,
  cancel: { method: 'POST', path: '/cancel' },
  firstPollMs: 1,
  lastPollMs: 1,
})
const reset = new NodeFault({ class: 'reset', message: 'reset', bytes: 0, elapsedMs: 0 })
const begun: Answer = { status: 202, body: { id: 'j1', status: 'queued' } }
const working: Answer = { status: 200, body: { id: 'j1', status: 'generating' } }
const done: Answer = { status: 200, body: { id: 'j1', status: 'completed', result: 7 } }

/** A node that gives these answers in order, the last one for ever. */
const nodeWith = (...answers: readonly Answer[]) => {
  const left = [...answers]
  const calls: string[] = []
  const send = async ({ method, url, headers }: UpstreamSend): Promise<UpstreamReply> => {
    calls.push(`${method} ${url}${headers['content-type'] === undefined ? '' : ' with content'}`)
    const answer = left.length > 1 ? left.shift() : left[0]
    if (answer instanceof NodeFault) throw answer
    let rest: Uint8Array | undefined = Buffer.from(JSON.stringify(answer?.body ?? {}))
    const read = async (): Promise<Uint8Array | undefined> => {
      const piece = rest
      rest = undefined
      return piece
    }
    return { status: answer?.status ?? 500, headers: {}, read, close: () => {} }
  }
  const client = new AbortController()
  const sender = { isLeft: false, sending: () => {} }
  const request = {
    url: 'http://node/make',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: new Uint8Array(0),
    connectTimeoutMs: 1_000,
    signal: client.signal,
    sender,
  } as const
  return { calls, client, sender, follow: () => follow(request, { send } as unknown as UpstreamClient) }
}

const statesOf = async (reply: UpstreamReply): Promise<unknown[]> => {
  const states: unknown[] = []
  for (let line = await reply.read(); line; line = await reply.read())
    states.push(JSON.parse(Buffer.from(line).toString()).status)
  return states
}

test('what the node says of a job comes line by line until it is over', async () => {
  const node = nodeWith(begun, working, working, done)

  expect(await statesOf(await node.follow())).toEqual(['queued', 'generating', 'generating', 'completed'])

  const poll = 'GET http://node/make/j1'
  expect(node.calls).toEqual(['POST http://node/make with content', poll, poll, poll])
})

test('a refusal of the job is the reply', async () => {
  expect(await nodeWith({ status: 429 }).follow()).toMatchObject({ status: 429 })
})

test('a job that the node has forgotten has failed', async () => {
  expect(await statesOf(await nodeWith(begun, { status: 410 }).follow())).toEqual(['queued', 'failed'])
})

test('two polls in a row may fail, a third one is the end, and the job is cancelled when it is given up', async () => {
  const patient = nodeWith(begun, reset, { status: 502 }, working, reset, reset, done)
  expect(await statesOf(await patient.follow())).toEqual(['queued', 'generating', 'completed'])

  const lost = nodeWith(begun, reset)
  const reply = await lost.follow()
  await expect(statesOf(reply)).rejects.toBeInstanceOf(NodeFault)
  reply.close()
  expect(lost.calls.at(-1)).toBe('POST http://node/make/j1/cancel')
})

test('a node that tells no state has lost the job, else its slot would be taken for ever', async () => {
  const reply = await nodeWith({ status: 200, body: { id: 'j1' } }).follow()

  await expect(statesOf(reply)).rejects.toBeInstanceOf(NodeFault)
})

test('a request that is aborted cancels its job once, one that is over cancels nothing', async () => {
  const aborted = nodeWith(begun, working)
  const reply = await aborted.follow()
  await reply.read()
  aborted.client.abort()
  expect(await reply.read()).toBeUndefined()
  reply.close()
  expect(aborted.calls.filter((call) => call.endsWith('/cancel'))).toHaveLength(1)

  const over = nodeWith(begun, done)
  await statesOf(await over.follow())
  over.client.abort()
  expect(over.calls.filter((call) => call.endsWith('/cancel'))).toEqual([])
})

test('a job that its sender leaves to the next process is not cancelled', async () => {
  const node = nodeWith(begun, working)
  const reply = await node.follow()
  await reply.read()
  node.sender.isLeft = true
  reply.close()
  node.client.abort()

  expect(node.calls.filter((call) => call.endsWith('/cancel'))).toEqual([])
  expect(await reply.read()).toBeUndefined()
})
