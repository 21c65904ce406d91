import { expect, test } from 'bun:test'
import type { Socket } from 'bun'
import { chatText } from '../support/fakes'
import { withRouter } from '../support/router'

/** What stands between may take a connection for dead after so long without a byte, in ms. */
const CUT_AFTER_MS = 15_500

interface Line {
  other?: Socket<Line>
  timer?: ReturnType<typeof setTimeout>
  readonly pending: Uint8Array[]
}

/** A proxy that hangs up on a client that hears nothing for too long. */
const startProxy = (port: number) => {
  const listener = Bun.listen<Line>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(client) {
        client.data = { pending: [] }
        const arm = (): void => {
          clearTimeout(client.data.timer)
          client.data.timer = setTimeout(() => client.terminate(), CUT_AFTER_MS)
        }
        arm()
        void Bun.connect<Line>({
          hostname: '127.0.0.1',
          port,
          socket: {
            open(node) {
              node.data = { other: client, pending: [] }
              client.data.other = node
              for (const bytes of client.data.pending.splice(0)) node.write(bytes)
            },
            data(_node, bytes) {
              arm()
              client.write(bytes)
            },
            close: () => void client.end(),
          },
        })
      },
      data(client, bytes) {
        if (client.data.other) client.data.other.write(bytes)
        else client.data.pending.push(new Uint8Array(bytes))
      },
      close(client) {
        clearTimeout(client.data.timer)
        client.data.other?.end()
      },
    },
  })
  return { url: `http://127.0.0.1:${listener.port}`, stop: () => listener.stop(true) }
}

test('BL-S02 a node that is silent for 40 s loses no client behind a proxy that cuts at 15.5 s', async () => {
  await withRouter([{ kind: 'openai' }], {}, async ({ router, fakes, idle }) => {
    fakes[0]?.faults.add({ type: 'slow', ms: 40_000 })
    const proxy = startProxy(router.port)
    try {
      const answer = await fetch(`${proxy.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
      })
      const text = await answer.text()

      expect(answer.status).toBe(200)
      expect(text.match(/^: fleet reading the prompt on a, \d+ s$/gm)?.length).toBeGreaterThanOrEqual(6)
      expect(chatText(text.slice(text.indexOf('data:')))).not.toBe('')
      await idle()
    } finally {
      proxy.stop()
    }
  })
}, 60_000)
