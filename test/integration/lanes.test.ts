import { expect, test } from 'bun:test'
import { withMedia } from '../support/media-router'
import { openaiMedia } from '../support/media-servers'
import { post } from './media-clients'

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
