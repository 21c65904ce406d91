import { expect, test } from 'bun:test'
import { ask, ollamaChat, openAiChat, quietly, readSome } from '../integration/clients'
import { slowModel, until } from '../support/fakes'

test(
  'BL-D03 1 000 streams dropped after two tokens: no connection and no memory stays behind',
  () =>
    quietly(
      [{ kind: 'llamacpp', answerTokens: 10_000, keepLog: false, models: [slowModel('m', { decodePerSecond: 400 })] }],
      {},
      async (bench) => {
        const [fake] = bench.fakes
        const open = (): number => (fake?.sockets.opened ?? 0) - (fake?.sockets.closed ?? 0)
        let early = 0
        for (let round = 1; round <= 1_000; round += 1) {
          const client = new AbortController()
          const reply = await ask(bench.url, round % 2 === 0 ? openAiChat : ollamaChat, { signal: client.signal })
          await readSome(reply, (text) => text.includes('tok2'))
          client.abort()
          await until(
            () => bench.of('request.settled').length === round && bench.router.upstream.stats().open === 0,
            1_000,
          )
          if (round === 300) {
            Bun.gc(true)
            early = process.memoryUsage.rss()
          }
        }
        Bun.gc(true)

        // What is left are the polls of the node itself.
        await until(() => open() <= 4)
        expect(process.memoryUsage.rss() - early).toBeLessThan(60_000_000)
        await bench.idle()
      },
    ),
  180_000,
)
