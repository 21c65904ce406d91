import { expect, test } from 'bun:test'
import { withRouter } from '../support/router'

test('a chat goes through the whole router and is explained', () =>
  withRouter([{ kind: 'llamacpp' }, { kind: 'ollama' }], {}, async ({ chat, ollama, idle, json }) => {
    const reply = await chat({ stream: false })

    expect(reply.status).toBe(200)
    expect(reply.headers.get('x-fleet-node')).toBe('a')
    expect(await reply.json()).toMatchObject({ model: 'm', choices: [{ finish_reason: 'stop' }] })
    expect((await ollama()).status).toBe(200)
    await idle()
    expect(await json('/api/v1/requests/last')).toMatchObject({
      asked: { dialect: 'ollama' },
      outcome: { end: 'completed' },
    })
  }))
