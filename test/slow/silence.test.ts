import { describe, expect, test } from 'bun:test'
import { ask, kinds, ollamaChat, openAiChat, quietly, settledRecord, shapes } from '../integration/clients'
import { fastModel } from '../support/fakes'

const SECOND = 1_000

/** One router for each wait, all at the same time; each asks in every shape. */
const allAtOnce = (run: (kind: (typeof kinds)[number]) => Promise<unknown>) => Promise.all(kinds.map(run))

const hot = (kind: (typeof kinds)[number]) => ({ kind, resident: ['m'], slots: 8, models: [fastModel()] })

const patient = {
  describe: () => ({ maxConcurrency: 8 }),
  limits: { streamIdleTimeoutMs: 600 * SECOND },
}

describe('real silence', () => {
  test.concurrent.each([
    ['15 s', 15],
    ['130 s, longer than two minutes', 130],
    ['300 s, longer than the longest idle limit of the runtime', 300],
  ] as const)(
    'BL-S01 BL-T06 a stream that is quiet for %s arrives whole, whatever the client and the node',
    (_text, seconds) =>
      allAtOnce((kind) =>
        quietly([hot(kind)], patient, async (bench) => {
          bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: 2, ms: seconds * SECOND })

          const bodies = await Promise.all(shapes.map(async (shape) => (await ask(bench.url, shape)).text()))

          for (const [index, shape] of shapes.entries()) {
            const body = bodies[index] ?? ''
            expect(shape.isWhole(body)).toBe(true)
            expect(shape.text(body)).toMatch(/^tok1\.\w+ tok2.* tok16\.\w+$/)
          }
          expect(bench.of('request.settled').map(({ outcome }) => outcome.end)).toEqual(shapes.map(() => 'completed'))
        }),
      ),
    400 * SECOND,
  )

  test.concurrent(
    'BL-T06 a head after 330 s, then a gap of 330 s: no hidden ceiling of five minutes',
    () =>
      allAtOnce((kind) =>
        quietly([hot(kind)], patient, async (bench) => {
          bench.fakes[0]?.faults.add({ type: 'slow', ms: 330 * SECOND })
          bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: 3, ms: 330 * SECOND })

          const bodies = await Promise.all(
            [openAiChat, ollamaChat].map(async (shape) => (await ask(bench.url, shape)).text()),
          )

          expect(openAiChat.isWhole(bodies[0] ?? '')).toBe(true)
          expect(ollamaChat.isWhole(bodies[1] ?? '')).toBe(true)
          expect((await settledRecord(bench, 2)).outcome).toMatchObject({ end: 'completed', retries: 0 })
        }),
      ),
    720 * SECOND,
  )

  test.concurrent(
    'BL-D02 a drop is noticed at once although the node stays silent for 60 s',
    () =>
      quietly([hot('llamacpp')], patient, async (bench) => {
        bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: 2, ms: 60 * SECOND })
        const client = new AbortController()
        const reply = await ask(bench.url, openAiChat, { signal: client.signal })
        await Bun.sleep(20 * SECOND)
        expect(reply.status).toBe(200)

        const leftAt = performance.now()
        client.abort()
        expect((await settledRecord(bench)).outcome?.end).toBe('client_disconnected')

        expect(performance.now() - leftAt).toBeLessThan(SECOND)
      }),
    60 * SECOND,
  )
})
