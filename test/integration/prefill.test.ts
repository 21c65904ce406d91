import { expect, test } from 'bun:test'
import { fastModel } from '../support/fakes'
import { host, resident } from '../support/host'
import { answer, startRawServer } from '../support/raw-server'
import { withRouter } from '../support/router'
import { ask, openAiChat, pairs, quietly, settledRecord } from './clients'

/** The limit between two bytes is far below the time that the prompt takes, that for the first byte above it. */
const limits = { streamIdleTimeoutMs: 60, firstTokenTimeoutMs: 5_000 }
const PREFILL_MS = 300

test.concurrent.each(pairs)(
  'BL-T05 an answer in one piece has until the limit for its first byte: %s on %s',
  (_shape, kind, shape) =>
    quietly([{ kind: kind as 'openai', resident: ['m'], models: [fastModel()] }], { limits }, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'slow', ms: PREFILL_MS })

      const reply = await ask(bench.url, shape, { stream: false })

      expect(reply.status).toBe(200)
      expect(JSON.stringify(await reply.json())).toContain('tok16.')
      expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', retries: 0 })
    }),
)

test('BL-T05 with the limits as they are by default, 400 s of silence are no failure', async () => {
  const bench = host({ a: resident() })
  await bench.ready()
  const { outcome } = bench.submit({ stream: false })
  await bench.clock.advance(400_000)

  bench.gateway.running[0]?.start()
  bench.gateway.running[0]?.finish()

  expect(await outcome).toHaveProperty('reply')
  expect(bench.settled()).toMatchObject([{ outcome: { end: 'completed', retries: 0 } }])
  bench.expectIdle()
})

test('BL-T05 a node that sends its headers at once and then computes is waited for just as long', async () => {
  const whole = JSON.stringify({
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'done' }, finish_reason: 'stop' }],
  })
  const node = startRawServer((connection, { head }) => {
    if (!head.startsWith('POST')) return connection.send(answer('{"object":"list","data":[{"id":"m"}]}'))
    connection.send(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${whole.length}\r\n\r\n`)
    setTimeout(() => connection.send(whole), PREFILL_MS)
  })
  try {
    await withRouter(
      [{ kind: 'openai', models: [] }],
      { limits, log: { level: 'silent' }, describe: () => ({ url: node.url }) },
      async (bench) => {
        const reply = await ask(bench.url, openAiChat, { stream: false })

        expect(await reply.json()).toMatchObject({ choices: [{ message: { content: 'done' } }] })
        expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', retries: 0 })
      },
    )
  } finally {
    node.stop()
  }
})
