import { expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { vllm } from '../../../src/nodes/vllm'
import type { NodeFault } from '../../../src/ports/node-gateway'
import { nodeAt, recording, replay } from '../../fixtures/nodes/recorded'
import { askChat, slowModel, until, withFakes } from '../../support/fakes'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

test('an engine that is dead behind its HTTP server fails the poll', async () => {
  const { routes } = recording('vllm-0.32')
  const server = replay({ routes: { ...routes, 'GET /health': { status: 503, text: '' } } })
  const error = await vllm.report(nodeAt(server.url, 'vllm'), http, signal).catch((thrown: unknown) => thrown)
  server.stop()
  expect((error as NodeFault).failure).toMatchObject({ class: 'status', status: 503 })
  expect((error as NodeFault).message).toBe('the engine of rig is dead: /health answered 503')
})

test('what runs and what waits inside it counts as running', () =>
  withFakes([{ kind: 'vllm', slots: 2, models: [slowModel('m')], answerTokens: 1000 }], async (fake) => {
    const control = new AbortController()
    for (let i = 0; i < 3; i += 1) askChat(fake!, { signal: control.signal }).catch(() => {})
    await until(() => fake!.running() === 2 && fake!.log.length === 3)

    const { models, resident } = await vllm.report(nodeAt(fake!.url, 'vllm'), http, signal)
    control.abort()

    expect(models).toEqual([{ name: 'm', aliases: ['org/m'], maxContextTokens: 8192 }])
    expect(resident).toEqual([{ name: 'm', state: 'ready', contextTokens: 8192, running: 3, kvUsage: 1 }])
  }))

test('it can neither load nor unload', () => {
  expect(vllm.load).toBeUndefined()
  expect(vllm.unload).toBeUndefined()
})
