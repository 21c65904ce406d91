import { expect, test } from 'bun:test'
import { withRouter } from '../support/router'
import { answer, chunk, chunkedHead, LAST_CHUNK, startRawServer } from '../support/raw-server'
import { until } from '../support/fakes'
import { anthropicMessages, ollamaChat, openAiChat, type Shape } from './clients'

const STREAMS = 20
const PER_SECOND = 50
const CHUNKS = 40
const GAP_MS = 1_000 / PER_SECOND

const event = (delta: object, finish: string | null = null): string =>
  chunk(
    `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
  )

/** A node that writes to each stream 50 times a second when it does so. */
const startStamper = () =>
  startRawServer((connection, { head }) => {
    if (!head.startsWith('POST')) return connection.send(answer('{"object":"list","data":[{"id":"m"}]}'))
    let written = 0
    connection.send(chunkedHead())
    const timer = setInterval(() => {
      written += 1
      if (written <= CHUNKS && !connection.closed) return connection.send(event({ content: `<${performance.now()}>` }))
      clearInterval(timer)
      connection.send(`${event({}, 'stop')}${chunk('data: [DONE]\n\n')}${LAST_CHUNK}`)
    }, GAP_MS)
  })

/** How late each chunk came, in ms, and how many came in one piece with another. */
const listen = async (url: string, shape: Shape): Promise<{ late: number[]; merged: number }> => {
  const reply = await fetch(`${url}${shape.path}`, { method: 'POST', body: JSON.stringify(shape.body({})) })
  const decoder = new TextDecoder()
  const late: number[] = []
  let merged = 0
  for await (const piece of reply.body as ReadableStream<Uint8Array>) {
    const stamps = [...decoder.decode(piece).matchAll(/<([\d.]+)>/g)].map(([, stamp]) => Number(stamp))
    late.push(...stamps.map((stamp) => performance.now() - stamp))
    merged += Math.max(0, stamps.length - 1)
  }
  return { late, merged }
}

test.each([openAiChat, ollamaChat, anthropicMessages].map((shape) => [shape.name, shape] as const))(
  'BL-W06 %s: at 20 streams of 50 chunks a second none is held back and none waits for the next',
  async (_name, shape) => {
    const node = startStamper()
    try {
      await withRouter(
        [{ kind: 'openai', models: [] }],
        { describe: () => ({ url: node.url, maxConcurrency: STREAMS }) },
        async ({ url, router, idle }) => {
          await until(() => router.fleet.models().length > 0)
          const heard = await Promise.all(Array.from({ length: STREAMS }, () => listen(url, shape)))

          const late = heard.flatMap((one) => one.late).toSorted((a, b) => a - b)
          const merged = heard.reduce((sum, one) => sum + one.merged, 0)
          expect(late).toHaveLength(STREAMS * CHUNKS)
          // Whoever waits for the peer's acknowledgement, or for a buffer to fill, is a gap late or more: half of all.
          expect(late[late.length / 2]).toBeLessThan(GAP_MS / 4)
          // A machine that is busy elsewhere may stop all of this for a moment.
          expect(merged).toBeLessThan((STREAMS * CHUNKS) / 20)
          await idle()
        },
      )
    } finally {
      node.stop()
    }
  },
  10_000,
)
