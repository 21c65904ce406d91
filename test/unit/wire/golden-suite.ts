/** The one runner of translation tables: every row of them, however its goldens are spread over files. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { RouterError } from '../../../src/domain/errors'
import type { ReplyTransform } from '../../../src/wire/exchange'
import type { Golden } from './golden'
import { differingCut, exchangeOf, paths, recordEnd, requestOf, run, text, timing } from './golden'

const model = 'node-model'

const requestFor = (golden: Golden) => requestOf(exchangeOf(paths[golden.client], golden.ask), golden, model)

const refusalOf = (golden: Golden): unknown => {
  try {
    return requestFor(golden)
  } catch (error) {
    return error
  }
}

const bytesOf = (records: readonly string[] = [], end: string): string => records.map((record) => record + end).join('')

/** A golden's answer as the node sends it and as the client is to be told it, with a fresh transform for each run. */
export const answerOf = (golden: Golden) => {
  const { stream } = exchangeOf(paths[golden.client], golden.ask).job
  const client = golden.client.startsWith('ollama') ? 'ollama' : 'openai'
  return {
    bytes: new TextEncoder().encode(bytesOf(golden.answer, recordEnd(golden.node, stream))),
    told: bytesOf(golden.told, recordEnd(client, stream)),
    /** Of a call of its own: an exchange knows how far its stream has come. */
    transform: (): ReplyTransform => {
      const exchange = exchangeOf(paths[golden.client], golden.ask)
      return exchange.reply(requestOf(exchange, golden, model), model, timing())
    },
  }
}

/** For tables of tests. */
export const named = (goldens: readonly Golden[]) =>
  goldens.map((golden, index) => {
    const { table, row, client, node } = golden
    return [`${table} ${row}: ${client} client, ${node} node (${index})`, golden] as const
  })

/** `rows` names the rows of the tables, and for each the kinds of node that it is to be recorded with. */
export const describeGoldens = (goldens: readonly Golden[], rows: Readonly<Record<string, string>>): void => {
  describe('what a node is asked', () => {
    test.each(named(goldens.filter(({ sent }) => sent)))('%s', (_, golden) => {
      const { path, body } = requestFor(golden)

      expect<unknown>({ path, body: JSON.parse(text(body)) }).toEqual(golden.sent)
    })

    test.each(named(goldens.filter(({ refused }) => refused)))('refused: %s', (_, golden) => {
      const error = refusalOf(golden)

      expect(error).toBeInstanceOf(RouterError)
      expect(error).toMatchObject({ code: golden.refused?.code, details: { param: golden.refused?.param } })
    })
  })

  describe('what a client is told, however the bytes of the node arrive (BL-I01)', () => {
    test.each(named(goldens.filter(({ answer }) => answer)))('%s', (_, golden) => {
      const { bytes, told, transform } = answerOf(golden)

      expect(run(transform(), [bytes])).toBe(told)
      expect(differingCut(bytes, (pieces) => run(transform(), pieces))).toBeUndefined()
    })
  })

  test('every row of the tables has an exchange with each kind of node that it names', () => {
    const recorded: Record<string, Set<string>> = {}
    for (const { table, row, node } of goldens) {
      const key = `${table} ${row}`
      recorded[key] = (recorded[key] ?? new Set()).add(node)
    }
    const sorted = (nodes: Iterable<string>): string => [...nodes].sort().join(' ')

    expect(Object.fromEntries(Object.entries(recorded).map(([row, nodes]) => [row, sorted(nodes)]))).toEqual(
      Object.fromEntries(Object.entries(rows).map(([row, nodes]) => [row, sorted(nodes.split(' '))])),
    )
  })
}

/** Feeds each the records of a golden's stream, doubled, dropped, reordered and with bytes flipped; `sound` judges what came. */
export const underNoise = (streams: readonly Golden[], sound: (reply: ReplyTransform, told: string) => void): void =>
  fc.assert(
    fc.property(
      fc.constantFrom(...streams),
      fc.infiniteStream(fc.nat()),
      fc.array(fc.record({ at: fc.nat(), byte: fc.nat(255) }), { maxLength: 6 }),
      (golden, order, noise) => {
        const end = recordEnd(golden.node, true)
        const records = golden.answer ?? []
        const shuffled = records.map(() => records[(order.next().value ?? 0) % records.length] + end)
        const bytes = new TextEncoder().encode(shuffled.join(''))
        for (const { at, byte } of noise) bytes[at % bytes.length] = byte
        const reply = answerOf(golden).transform()

        sound(reply, run(reply, [bytes]))

        expect(reply.complete() && reply.problem() !== undefined).toBe(false)
      },
    ),
    { numRuns: 300 },
  )
