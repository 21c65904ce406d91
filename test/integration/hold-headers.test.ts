import { describe, expect, test } from 'bun:test'
import { chatText, type FakeSpec, slowModel } from '../support/fakes'
import { type Setup, withRouter } from '../support/router'

/** The router waits so long before it sends headers. */
const HOLD_MS = 100

const holding = ({ server, ...rest }: Setup = {}): Setup => ({ ...rest, server: { holdHeadersMs: HOLD_MS, ...server } })

const comments = (text: string): string[] => text.split('\n').filter((line) => line.startsWith(':'))
const answered = (text: string): string => chatText(text.slice(text.indexOf('data:')))

/** One slot; an answer takes 0.8 s, so that whoever comes second waits. */
const busy: FakeSpec = { kind: 'openai', models: [slowModel('m')], slots: 1, answerTokens: 16 }
const quick: FakeSpec = { kind: 'openai' }
const oneSlot = { describe: () => ({ maxConcurrency: 1 }) }

describe('a client of an event stream that waits longer than server.hold_headers', () => {
  test('BL-S02 gets its headers and comments, then the whole answer; a comment is no first token', async () => {
    await withRouter([busy], holding(oneSlot), async ({ chat, of, idle }) => {
      const first = await chat()
      const startedAt = performance.now()

      const second = await chat()
      const headersAfterMs = performance.now() - startedAt
      const [, text] = await Promise.all([first.text(), second.text()])

      expect(second.status).toBe(200)
      expect(second.headers.get('content-type')).toStartWith('text/event-stream')
      expect(headersAfterMs).toBeGreaterThanOrEqual(HOLD_MS - 5)
      expect(headersAfterMs).toBeLessThan(600)
      expect(text).toStartWith(': fleet waiting for a slot on a, 0 s\n\n')
      expect(comments(text)).toHaveLength(1)
      expect(text.trimEnd()).toEndWith('data: [DONE]')
      expect(answered(text)).not.toBe('')
      await idle()
      expect(of('request.settled').at(-1)?.outcome).toMatchObject({ end: 'completed', status: 200 })
      expect(of('request.settled').at(-1)?.outcome.ttftMs).toBeGreaterThan(headersAfterMs)
    })
  })

  test('BL-S02 a failure after that is an event of the protocol, and the record says that the client got 200', async () => {
    const hold = { ...oneSlot, policy: { holdTimeoutMs: 400 } as never }
    await withRouter([quick], holding(hold), async ({ chat, router, of, idle }) => {
      router.fleet.setAdmission('a', 'paused')

      const answer = await chat()
      const text = await answer.text()

      expect(answer.status).toBe(200)
      expect(text).toStartWith(': fleet waiting for a node')
      expect(text).toMatch(/data: \{"error":\{.*"code":"no_capacity"/)
      expect(text).not.toContain('[DONE]')
      await idle()
      expect(of('request.settled').at(-1)?.outcome).toMatchObject({ end: 'expired', status: 200, code: 'no_capacity' })
    })
  })

  test('may still be tried on another node', async () => {
    await withRouter([quick, quick], holding(), async ({ chat, fakes, of, idle }) => {
      for (const fake of fakes) fake.faults.add({ type: 'reset', afterMs: 300, times: 1 })
      fakes[1]?.faults.clear()

      const texts: string[] = []
      for (let at = 0; at < 2; at++) texts.push(await (await chat()).text())

      expect(texts.filter((text) => comments(text).length > 0)).toHaveLength(1)
      for (const text of texts) expect(answered(text)).not.toBe('')
      await idle()
      expect(of('request.settled').map(({ outcome }) => outcome.end)).toEqual(['completed', 'completed'])
      expect(of('request.settled').reduce((sum, { outcome }) => sum + outcome.retries, 0)).toBe(1)
    })
  })

  test('and whose request the node refuses for good gets the node s own words in an event', async () => {
    await withRouter([quick], holding(), async ({ chat, fakes, idle }) => {
      fakes[0]?.faults.add({ type: 'status', status: 400, afterMs: 300, message: 'no such tool' })

      const answer = await chat()
      const text = await answer.text()

      expect(answer.status).toBe(200)
      expect(text).toContain('"message":"no such tool"')
      await idle()
    })
  })

  test('is let go at once when it leaves, slot and all', async () => {
    await withRouter([busy], holding(oneSlot), async ({ chat, of, idle }) => {
      const first = await chat()
      const client = new AbortController()
      const second = await chat({ signal: client.signal })
      const reader = second.body?.getReader()
      await reader?.read()

      client.abort()
      await first.text()

      await idle()
      expect(
        of('request.settled')
          .map(({ outcome }) => outcome.end)
          .toSorted(),
      ).toEqual(['client_disconnected', 'completed'])
    })
  })

  test('with loading_notes off the comments say nothing', async () => {
    const server = { loadingNotes: 'off', holdHeadersMs: HOLD_MS } as const
    await withRouter([busy], holding({ ...oneSlot, server }), async ({ chat }) => {
      const first = await chat()
      const second = await chat()

      const [, text] = await Promise.all([first.text(), second.text()])

      expect(comments(text)).toEqual([': fleet waiting'])
    })
  })
})

describe('BL-S02 nobody else', () => {
  test.each([
    ['a client that does not stream', 'chat', false],
    ['an Ollama client', 'ollama', true],
  ] as const)('%s just waits', async (_who, protocol, stream) => {
    await withRouter([busy], holding(oneSlot), async (bench) => {
      const first = await bench.chat()
      const startedAt = performance.now()

      const second = await bench[protocol]({ stream })
      const headersAfterMs = performance.now() - startedAt
      const [, text] = await Promise.all([first.text(), second.text()])

      expect(headersAfterMs).toBeGreaterThan(500)
      expect(comments(text)).toEqual([])
    })
  })

  test('an answer that begins in time has no comment, and 0 turns it off', async () => {
    await withRouter([busy], { ...oneSlot, server: { holdHeadersMs: 0 } }, async ({ chat }) => {
      const first = await chat()
      const second = await chat()

      const texts = await Promise.all([first.text(), second.text()])

      expect(texts.flatMap(comments)).toEqual([])
    })
  })
})

test('BL-S02 a client of Anthropic gets pings, one of Responses its comments', async () => {
  await withRouter([busy], holding(oneSlot), async ({ chat, url }) => {
    const post = (path: string, body: object) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', stream: true, ...body }),
      })
    const first = await chat()

    const anthropic = await post('/v1/messages', { max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] })
    const responses = await post('/v1/responses', { input: 'hi' })
    const texts = await Promise.all([anthropic.text(), responses.text(), first.text()])

    expect(texts[0]).toStartWith('event: ping\n')
    expect(texts[0]).toContain('event: message_stop')
    expect(texts[1]).toStartWith(': ')
    expect(texts[1]).toContain('response.completed')
  })
})
