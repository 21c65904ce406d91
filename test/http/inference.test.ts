import { expect, test } from 'bun:test'
import { RouterError } from '../../src/domain/errors'
import { bytes, host, json, record } from './harness'

test('a request is decoded by its dialect, submitted, and answered with the reply of the fleet', async () => {
  const { post, jobs } = host({ submit: async () => json({ answer: 1 }, { status: 201 }) })

  const response = await post('/api/chat', { model: 'qwen' })

  expect(response.status).toBe(201)
  expect(await response.json()).toEqual({ answer: 1 })
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(jobs.map((job) => [job.dialect, job.asked])).toEqual([['ollama', 'qwen']])
})

test.each([
  '/v1/chat/completions/',
  '/v1/v1/chat/completions',
  '/v1/v1/chat/completions/',
  '/v1/chat/completions?beta=true',
])('the spelling %s is understood', async (path) => {
  const { post, jobs } = host()

  const response = await post(path, { model: 'qwen' })

  expect(response.status).toBe(200)
  expect(jobs).toHaveLength(1)
})

test('the exchange is there while the fleet works on the request, and gone afterwards', async () => {
  let during = false
  const { chat, exchanges } = host({
    submit: async (job) => {
      during = exchanges.has(job.id)
      return json({})
    },
  })

  await chat()

  expect(during).toBe(true)
  expect(exchanges.size).toBe(0)
})

test('the exchange is gone when the fleet refuses', async () => {
  const { chat, exchanges } = host({ submit: () => Promise.reject(new RouterError('queue_full', 'full')) })

  const response = await chat()

  expect(await response.json()).toMatchObject({ shape: 'openai', code: 'queue_full', requestId: 'req_1' })
  expect(exchanges.size).toBe(0)
})

test('a stream must not be held back by proxies, a whole answer may', async () => {
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(bytes('data: 1\n\n'))
      controller.close()
    },
  })
  const streamed = await host({
    submit: async () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body: stream }),
  }).chat()
  const whole = await host().chat()

  expect(streamed.headers.get('cache-control')).toBe('no-cache')
  expect(streamed.headers.get('x-accel-buffering')).toBe('no')
  expect(await streamed.text()).toBe('data: 1\n\n')
  expect(whole.headers.has('x-accel-buffering')).toBe(false)
})

test('every answer tells our request id and instance, and echoes the id of the client', async () => {
  const { chat, get } = host()

  const ok = await chat({ 'x-request-id': 'mine-7' })
  const unknown = await get('/nothing')

  expect(ok.headers.get('x-request-id')).toBe('req_1')
  expect(ok.headers.get('x-client-request-id')).toBe('mine-7')
  expect(ok.headers.get('x-fleet-instance')).toBe('inst-1')
  expect(unknown.headers.get('x-request-id')).toBe('req_2')
  expect(unknown.headers.get('x-fleet-instance')).toBe('inst-1')
})

test.each(['a b', 'x'.repeat(129), 'ü'])('a client id such as %p is neither echoed nor stored', async (id) => {
  const { chat, arrivals } = host()

  const response = await chat({ 'x-request-id': id })

  expect(response.headers.has('x-client-request-id')).toBe(false)
  expect(arrivals[0]?.context.clientRequestId).toBeUndefined()
})

test('the decision record stands in the headers, its signals only when asked for', async () => {
  const { chat } = host({
    records: [record('req_1'), record('req_2')],
    replyHeaders: (one, { explain }) => ({
      'X-Fleet-Why': `resident ${one.id}`,
      ...(explain ? { 'X-Fleet-Signals': 'a=1' } : {}),
    }),
  })

  const plain = await chat()
  const explained = await chat({ 'x-fleet-explain': '1' })

  expect(plain.headers.get('x-fleet-why')).toBe('resident req_1')
  expect(plain.headers.has('x-fleet-signals')).toBe(false)
  expect(explained.headers.get('x-fleet-signals')).toBe('a=1')
})

test('header values that no server may send do not break the answer', async () => {
  const { chat } = host({
    records: [record('req_1')],
    replyHeaders: () => ({ 'bad name': 'x', 'X-Fleet-Node': '名前 7\r\nX-Evil: 1' }),
    submit: async () => ({ status: 200, headers: { 'x-model': 'ü' }, body: bytes('ok') }),
  })

  const response = await chat()

  expect(response.status).toBe(200)
  expect(response.headers.get('x-fleet-node')).toBe('%E5%90%8D%E5%89%8D 7%0D%0AX-Evil: 1')
  expect(response.headers.has('x-evil')).toBe(false)
  expect(response.headers.get('x-model')).toBe('%C3%BC')
})

test('the X-Fleet headers and the arrival time become the context of the job', async () => {
  const { chat, jobs } = host()

  await chat({
    'x-fleet-node': '#gpu',
    'x-fleet-priority': 'Batch',
    'x-fleet-session': 's1',
    'x-fleet-tags': 'a, b,,c',
    'x-fleet-deadline': '2.5',
  })

  expect(jobs[0]).toMatchObject({
    pin: '#gpu',
    priority: 'batch',
    session: 's1',
    tags: ['a', 'b', 'c'],
    deadlineAt: 1_002_500,
    arrivedAt: 1_000_000,
  })
})

test.each([
  ['x-fleet-priority', 'urgent'],
  ['x-fleet-deadline', 'soon'],
  ['x-fleet-deadline', '0'],
  ['x-fleet-deadline', '-3'],
  ['x-fleet-deadline', '1e3'],
])('%s: %s is refused and never submitted', async (name, value) => {
  const { chat, jobs } = host()

  const response = await chat({ [name]: value })

  expect(response.status).toBe(400)
  expect(((await response.json()) as { param: string }).param.toLowerCase()).toBe(name)
  expect(jobs).toEqual([])
})

test('a request that has been here before is refused as a loop', async () => {
  const { chat, jobs } = host()

  const looped = await chat({ 'x-fleet-via': 'other, inst-1' })
  const passing = await chat({ 'x-fleet-via': 'other, inst-10' })

  expect(looped.status).toBe(508)
  expect(passing.status).toBe(200)
  expect(jobs).toHaveLength(1)
})

test('what fails inside is answered as internal and logged without what the client wrote', async () => {
  const { post, warnings } = host()

  const response = await post('/v1/chat/completions', '{"model": secret-prompt')

  expect(await response.json()).toMatchObject({ code: 'internal' })
  expect(warnings).toHaveLength(1)
  expect(JSON.stringify(warnings)).toContain('req_1')
  expect(JSON.stringify(warnings)).not.toContain('secret')
})

test('an answer stands even when its explanation cannot be made', async () => {
  const { chat, warnings } = host({
    records: [record('req_1')],
    replyHeaders: () => {
      throw new Error('no words')
    },
  })

  const response = await chat()

  expect(await response.json()).toEqual({ ok: true })
  expect(response.headers.get('x-request-id')).toBe('req_1')
  expect(warnings).toEqual([[{ request: 'req_1', cause: 'Error: no words' }, expect.any(String)]])
})

test('a stream that cannot be sent is cancelled, so that its node is free again', async () => {
  const cancelled = Promise.withResolvers<unknown>()
  const body = new ReadableStream<Uint8Array>({ cancel: cancelled.resolve })
  const { chat } = host({ submit: async () => ({ status: 99, headers: {}, body }) })

  const response = await chat()

  expect(response.status).toBe(500)
  await cancelled.promise
})
