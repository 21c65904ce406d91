import { expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { openai } from '../../../src/nodes/openai'
import { nodeAt, replay } from '../../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

test('a node that wants a key is told apart from one without a list, and is not asked elsewhere', async () => {
  const server = replay({ routes: { 'GET /v1/models': { status: 401, body: { error: 'Unauthorized' } } } })
  const error = await openai.report(nodeAt(server.url, 'openai'), http, signal).catch((thrown: Error) => thrown)
  server.stop()
  expect((error as Error).message).toContain('/v1/models answered 401: Unauthorized')
  expect(server.log).toEqual(['GET /v1/models'])
})

test('when neither list exists the fault names the usual address', async () => {
  const server = replay({ routes: {} })
  const error = await openai.report(nodeAt(server.url, 'openai'), http, signal).catch((thrown: Error) => thrown)
  server.stop()
  expect((error as Error).message).toContain('/v1/models answered 404')
  expect(server.log).toEqual(['GET /v1/models', 'GET /models'])
})

test('it can neither load nor unload', () => {
  expect(openai.load).toBeUndefined()
  expect(openai.unload).toBeUndefined()
})

test('a server with a path in front of its API is asked under that path', async () => {
  const server = replay({ routes: { 'GET /llm/v1/models': { status: 200, body: { data: [{ id: 'm' }] } } } })
  const { models } = await openai.report(nodeAt(`${server.url}/llm/v1`, 'openai'), http, signal)
  server.stop()
  expect(models).toEqual([{ name: 'm' }])
})
