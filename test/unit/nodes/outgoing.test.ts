import { describe, expect, test } from 'bun:test'
import type { NodeDescription } from '../../../src/domain/node'
import { createEnvelopes } from '../../../src/nodes/outgoing'
import type { UpstreamRequest } from '../../../src/wire/exchange'
import { node } from './relay-harness'

const request = (options: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  method: 'POST',
  path: '/v1/chat',
  headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
  body: new Uint8Array(),
  dialect: 'openai',
  stream: true,
  ...options,
})

const rig: NodeDescription = node('http://rig', { key: 'NODE-KEY' })

describe('the envelope of a request', () => {
  test('has the address on the node, the headers of the dialect and those of the router', () => {
    expect(createEnvelopes('fleet_abc')(rig, request())).toMatchObject({
      url: 'http://rig/v1/chat',
      headers: {
        'x-fleet-via': 'fleet_abc',
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: 'Bearer NODE-KEY',
      },
    })
  })

  test('is the same one for the same node, path and headers', () => {
    const envelopeFor = createEnvelopes('fleet_abc')

    expect(envelopeFor(rig, request()).headers).toBe(envelopeFor(rig, request()).headers)
  })

  test.each([
    ['another value', { accept: 'application/json' }],
    ['one header less', { accept: undefined }],
    ['one header more', { 'anthropic-version': '1' }],
  ])('is another for %s', (_what, change) => {
    const envelopeFor = createEnvelopes('fleet_abc')
    const { headers } = request()
    const changed = JSON.parse(JSON.stringify({ ...headers, ...change })) as Record<string, string>
    envelopeFor(rig, request())

    const sent = envelopeFor(rig, request({ headers: changed })).headers

    expect(sent).toEqual({ 'x-fleet-via': 'fleet_abc', authorization: 'Bearer NODE-KEY', ...changed })
  })

  test('is another for another path, and for a node that was described anew', () => {
    const envelopeFor = createEnvelopes('fleet_abc')
    envelopeFor(rig, request())

    expect(envelopeFor(rig, request({ path: '/api/chat' })).url).toBe('http://rig/api/chat')
    expect(envelopeFor({ ...rig, key: 'NEW' }, request()).headers.authorization).toBe('Bearer NEW')
  })

  test('is right however many were asked for before', () => {
    const envelopeFor = createEnvelopes('fleet_abc')

    for (let i = 0; i < 100; i += 1) {
      const headers = { 'content-type': `multipart/form-data; boundary=${i}` }
      expect(envelopeFor(rig, request({ headers })).headers['content-type']).toBe(headers['content-type'])
    }
  })
})
