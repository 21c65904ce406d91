import { expect, test } from 'bun:test'
import { until } from '../support/fakes'
import { withMedia } from '../support/media-router'
import { openaiMedia, whisperServer } from '../support/media-servers'
import type { Bench } from '../support/router'
import { post, sendForm, wav } from './media-clients'

const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]

/** Chats, and fails at every picture. */
const clumsy = () =>
  openaiMedia(['m'], async ({ path }) => {
    if (path === '/v1/chat/completions') return Response.json({ id: 'c', model: 'm', choices })
    await Bun.sleep(20)
    return Response.json({ error: { message: 'no' } }, { status: 500 })
  })

test('no number of wishes for pictures that fail takes away the chat of the same server', async () => {
  await withMedia([['openai', clumsy(), { maxConcurrency: 20 }]], async ({ url, router, idle }) => {
    const wishes = Array.from({ length: 20 }, () => post(url, '/v1/images/generations', { model: 'm', prompt: 'x' }))
    for (const { status } of await Promise.all(wishes)) expect(status).toBe(502)
    await idle()

    expect(router.fleet.nodes()).toMatchObject([{ state: 'online', breaker: 'closed' }])
    const { status } = await post(url, '/v1/chat/completions', {
      model: 'm',
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect(status).toBe(200)
  })
})

/** Draws, unless it is asked for a size that it cannot do. */
const choosy = () =>
  openaiMedia(['m'], ({ json: { size } }) =>
    size === '1x1' ? Response.json({ error: { message: 'oom' } }, { status: 500 }) : Response.json({ data: [] }),
  )

/** Every node has told how it stands since. */
const polled = async ({ fleet }: Bench['router']): Promise<void> => {
  const from = Date.now()
  await until(() => fleet.nodes().every(({ lastReportAt = 0 }) => lastReportAt > from))
}

const draw = async (url: string, body: object): Promise<number> =>
  (await post(url, '/v1/images/generations', { model: 'm', ...body })).status

test('a client that repeats a wish that fails takes no picture from the others', async () => {
  await withMedia(
    [['openai', choosy()]],
    async ({ url, of, router }) => {
      for (let at = 0; at < 8; at += 1) expect(await draw(url, { prompt: 'x', size: '1x1' })).toBe(502)
      await polled(router)

      expect(await draw(url, { prompt: 'y' })).toBe(200)
      expect(of('node.breaker')).toEqual([])
      expect(router.fleet.nodes()[0]?.lanesDown).toBeUndefined()
    },
    { health: { pollEveryMs: 20, breakerFailures: 3 } },
  )
})

test('nor does it where the server does nothing else', async () => {
  await withMedia(
    [['whispercpp', whisperServer({ deafTo: 'noise.wav' })]],
    async ({ url, of, router }) => {
      const hear = async (name: string): Promise<number> =>
        (await sendForm(url, '/v1/audio/transcriptions', { model: 'whisper' }, { file: wav(name) })).status
      for (let at = 0; at < 8; at += 1) expect(await hear('noise.wav')).toBe(502)
      await polled(router)

      expect(await hear('talk.wav')).toBe(200)
      expect(of('node.breaker')).toEqual([])
      expect(router.fleet.nodes()[0]?.lanesDown).toBeUndefined()
    },
    { health: { pollEveryMs: 20, breakerFailures: 3 } },
  )
})

test('wishes that every server fails on take no picture from the others, different as they are', async () => {
  const setup = { health: { pollEveryMs: 20, breakerFailures: 3 } }
  await withMedia(
    [
      ['openai', choosy()],
      ['openai', choosy()],
    ],
    async ({ url, of, router }) => {
      for (let at = 0; at < 8; at += 1) expect(await draw(url, { prompt: `x${at}`, size: '1x1' })).toBe(502)
      await polled(router)

      expect(await draw(url, { prompt: 'y' })).toBe(200)
      expect(of('node.breaker')).toEqual([])
      expect(router.fleet.nodes().map(({ lanesDown }) => lanesDown)).toEqual([undefined, undefined])
    },
    setup,
  )
})

test('a server that fails at what another one draws is left alone with pictures', async () => {
  const broken = openaiMedia(['m'], () => Response.json({ error: { message: 'no' } }, { status: 500 }))
  const fine = openaiMedia(['m'], () => Response.json({ data: [] }))
  await withMedia(
    [
      ['openai', broken],
      ['openai', fine, { distance: 1 }],
    ],
    async ({ url, router }) => {
      const lanes = () => router.fleet.nodes().map(({ lanesDown }) => lanesDown)
      for (let at = 0; at < 30 && !lanes()[0]; at += 1) expect(await draw(url, { prompt: 'the same' })).toBe(200)
      expect(lanes()).toEqual([['image'], undefined])
      const asked = broken.calls.length
      expect(await draw(url, { prompt: 'the same' })).toBe(200)
      expect(broken.calls).toHaveLength(asked)
    },
    { health: { pollEveryMs: 20 } },
  )
})
