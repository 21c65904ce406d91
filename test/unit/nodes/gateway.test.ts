import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../../src/domain/errors'
import { NodeFault } from '../../../src/ports/node-gateway'
import { stopAfterEach } from '../../support/ending'
import { answer, chunk, chunkedHead, type RawRequest, rawServers, until } from '../../support/raw-server'
import {
  fakeExchange,
  forward,
  gatewayWith,
  type Heard,
  listenTo,
  node,
  type RunOptions,
  textOf,
} from './relay-harness'

const serve = rawServers(stopAfterEach())

/** The headers of the one request that a run sent. */
const sentHeaders = async (options: RunOptions): Promise<Map<string, string>> => {
  const server = serve((connection) => connection.send(answer('{}')))
  await forward(server.url, { stream: false, ...options }).over()
  const lines = (server.requests[0] as RawRequest).head.split('\r\n').slice(1)
  return new Map(lines.map((line) => line.split(': ') as [string, string]))
}

describe('what goes to the node', () => {
  test("is the exchange's own path, headers and body, and this router's id", async () => {
    const server = serve((connection) => connection.send(answer('{}')))

    await forward(server.url, { stream: false, headers: { accept: 'application/json' } }).over()

    const request = server.requests[0] as RawRequest
    expect(request.head).toStartWith('POST /v1/chat/completions HTTP/1.1\r\n')
    expect(request.head).toContain('\r\naccept: application/json')
    expect(request.head).toContain('\r\nx-fleet-via: fleet_abc')
    expect(request.body).toBe('{"model":"m"}')
  })

  test('BL-A01: no credential of the client passes, whatever the dialect put into its headers', async () => {
    const headers = {
      authorization: 'Bearer R-KEY',
      'x-api-key': 'R-KEY',
      cookie: 'a=R-KEY',
      'proxy-authorization': 'R-KEY',
    }

    const sent = await sentHeaders({ headers })

    expect([...sent.values()].join()).not.toContain('R-KEY')
  })

  test("BL-A01: the node's own key goes as a bearer token", async () => {
    const sent = await sentHeaders({ node: { key: 'NODE-KEY' }, headers: { authorization: 'Bearer R-KEY' } })

    expect(sent.get('authorization')).toBe('Bearer NODE-KEY')
  })

  test("is asked for with the node's dialects, name for the model and context window", async () => {
    const asked: unknown[] = []
    const server = serve((connection) => connection.send(answer('{}')))
    const exchange = {
      request(target: unknown): never {
        asked.push(target)
        throw new Error('enough')
      },
    }

    await forward(server.url, { exchange }).over()

    expect(asked).toMatchObject([{ node: { name: 'rig' }, model: 'm', native: ['openai'], contextTokens: 4_096 }])
  })
})

describe('attempts of one request', () => {
  test('do not mix: what ends late of the first leaves the second in reach', async () => {
    const server = serve((connection, request) => {
      if (request.number === 2) connection.send(`${chunkedHead()}${chunk('data: 1\n\n')}`)
    })
    const gateway = gatewayWith(new Map([['req_1', fakeExchange(true)]]))
    const [first, second] = [new AbortController(), new AbortController()]
    const heard: Heard[] = [{ events: [] }, { events: [] }]
    const call = { request: 'req_1', attempt: 1, node: node(server.url), model: 'm' }
    gateway.forward(call, listenTo(heard[0] as Heard), first.signal)
    await until(() => server.requests.length === 1, 'the first attempt arrived')
    gateway.forward({ ...call, attempt: 2 }, listenTo(heard[1] as Heard), second.signal)
    first.abort()
    await until(() => heard[1]?.reply !== undefined, 'the second attempt began')

    gateway.cut('req_1', { class: 'reset', message: 'shutting down', bytes: 0, elapsedMs: 0 })

    expect(await textOf(heard[1]?.reply as never)).toContain('in_band')
    expect(heard.map(({ events }) => events)).toEqual([[], ['started', 'finished']])
  })
})

describe('a call that the dialect answers itself', () => {
  test('begins and ends in a later turn, and nothing is sent', async () => {
    const own = { contentType: 'application/json', body: Buffer.from('{"done":true}') }

    const run = forward('http://127.0.0.1:1', { exchange: { loaded: () => own } })
    const early = [...run.heard.events]
    await run.over()

    expect(early).toEqual([])
    expect(run.heard).toMatchObject({
      events: ['started', 'finished'],
      reply: { status: 200, headers: { 'content-type': 'application/json' }, body: own.body },
      summary: { end: 'completed', bytes: 13, durationMs: 0 },
    })
  })
})

describe('calls that cannot be sent', () => {
  test('fail in a later turn when the request is not in progress any more', async () => {
    const heard: Heard = { events: [] }
    const call = { request: 'req_gone', attempt: 1, node: node('http://127.0.0.1:1'), model: 'm' }

    gatewayWith(new Map()).forward(call, listenTo(heard), new AbortController().signal)

    expect(heard.events).toEqual([])
    await Bun.sleep(0)
    expect(heard.events).toEqual(['failed'])
  })

  test('are refused with the error of the exchange when it has no form for the node', async () => {
    const refusal = new RouterError('not_supported', 'no embeddings there')
    const exchange = {
      request(): never {
        throw refusal
      },
    }

    const run = forward('http://127.0.0.1:1', { exchange })
    await run.over()

    expect(run.heard).toEqual({ events: ['refused'], refusal })
  })

  test('are not sent and not reported when their signal is aborted already', async () => {
    const server = serve((connection) => connection.send(answer('{}')))
    const heard: Heard = { events: [] }
    const call = { request: 'req_1', attempt: 1, node: node(server.url), model: 'm' }

    gatewayWith(new Map()).forward(call, listenTo(heard), AbortSignal.abort())
    await Bun.sleep(10)

    expect(heard.events).toEqual([])
    expect(server.connections).toHaveLength(0)
  })
})

describe('control calls', () => {
  test('go to the adapter of the kind', async () => {
    const calls: unknown[] = []
    const gateway = gatewayWith(new Map(), {
      load: async (_node, model, options) => void calls.push(['load', model, options]),
      unload: async (_node, model) => void calls.push(['unload', model]),
    })
    const { signal } = new AbortController()

    expect((await gateway.report(node('http://x'), signal)).models).toEqual([])
    await gateway.load(node('http://x'), 'm', { evicts: ['n'] }, signal)
    await gateway.unload(node('http://x'), 'm', signal)

    expect(calls).toEqual([
      ['load', 'm', { evicts: ['n'] }],
      ['unload', 'm'],
    ])
  })

  test('reject with a fault where the kind cannot', async () => {
    const gateway = gatewayWith(new Map())
    const { signal } = new AbortController()

    expect(gateway.load(node('http://x'), 'm', { evicts: [] }, signal)).rejects.toBeInstanceOf(NodeFault)
    expect(gateway.unload(node('http://x'), 'm', signal)).rejects.toBeInstanceOf(NodeFault)
  })
})
