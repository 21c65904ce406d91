import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../../src/domain/errors'
import finish from '../../fixtures/wire/finish.json'
import messages from '../../fixtures/wire/messages.json'
import pictures from '../../fixtures/wire/pictures.json'
import reasoning from '../../fixtures/wire/reasoning.json'
import sampling from '../../fixtures/wire/sampling.json'
import tools from '../../fixtures/wire/tools.json'
import usage from '../../fixtures/wire/usage.json'
import type { Golden } from './golden'
import { cuts, exchangeOf, paths, recordEnd, requestOf, run, timing } from './golden'

const goldens = [messages, pictures, tools, sampling, reasoning, finish, usage].flat() as Golden[]

/** The rows of the translation tables, and the directions that each has: `>` OpenAI client on Ollama, `<` the other. */
const rows: Readonly<Record<string, string>> = {
  '7.1 leading system': '<>',
  '7.1 later system': '<>',
  '7.1 user text': '<>',
  '7.1 raw prompt': '<',
  '7.1 several text parts': '>',
  '7.1 assistant text': '<>',
  '7.1 assistant reasoning': '<>',
  '7.1 assistant tool calls': '<>',
  '7.1 tool result': '<>',
  '7.1 alternation': '<>',
  '7.1 trailing assistant': '<>',
  '7.2 data URL': '>',
  '7.2 https URL': '>',
  '7.2 bad base64': '<>',
  '7.2 images': '<',
  '7.2 audio': '>',
  '7.2 documents': '>',
  '7.2 image in tool result': '>',
  '7.3 definition': '<>',
  '7.3 call id': '<>',
  '7.3 arguments': '<>',
  '7.3 stream': '<>',
  '7.3 stream without indexes': '<',
  '7.3 stream with one index': '<',
  '7.3 choice none': '>',
  '7.3 choice required': '>',
  '7.3 choice specific': '>',
  '7.3 choice allowed': '>',
  '7.3 parallel off': '>',
  '7.4 length': '<>',
  '7.4 no length': '<',
  '7.4 temperature': '<>',
  '7.4 top_p': '<>',
  '7.4 extensions': '<>',
  '7.4 stop': '<>',
  '7.4 seed': '<>',
  '7.4 penalties': '<>',
  '7.4 logprobs': '<>',
  '7.4 n': '>',
  '7.4 format json': '<>',
  '7.4 format schema': '<>',
  '7.4 window': '<>',
  '7.4 keep_alive': '<>',
  '7.4 wrong type': '<>',
  '7.5 effort none': '>',
  '7.5 effort minimal': '>',
  '7.5 effort low': '>',
  '7.5 effort medium': '>',
  '7.5 effort high': '>',
  '7.5 effort xhigh': '>',
  '7.5 effort max': '>',
  '7.5 think false': '<',
  '7.5 think true': '<',
  '7.5 think low': '<',
  '7.5 think max': '<',
  '7.5 output': '<>',
  '7.5 inline': '<>',
  '7.6 stop': '<>',
  '7.6 length': '<>',
  '7.6 tool_calls': '<>',
  '7.6 tool_calls then length': '>',
  '7.6 content_filter': '<',
  '7.6 broken': '<>',
  '7.6 cut off': '<>',
  '7.7 tokens': '<>',
  '7.7 tokens not asked for': '>',
  '7.7 timings': '<',
  '7.7 timings only': '<',
  '7.7 durations': '<',
}

const nameOf = ({ table, row, client, node }: Golden, index: number): string =>
  `${table} ${row}: ${client} client, ${node} node (${index})`

const bytesOf = (records: readonly string[], end: string): string => records.map((record) => record + end).join('')

const answerOf = (golden: Golden) => {
  const exchange = exchangeOf(paths[golden.client], golden.ask)
  const request = requestOf(exchange, golden, 'node-model')
  const { stream } = exchange.job
  return {
    bytes: new TextEncoder().encode(bytesOf(golden.answer ?? [], recordEnd(golden.node, stream))),
    told: bytesOf(golden.told ?? [], recordEnd(golden.node === 'openai' ? 'ollama' : 'openai', stream)),
    transform: () => exchange.reply(request, 'node-model', timing()),
  }
}

describe('what a node is asked', () => {
  test.each(goldens.map((golden, index) => [nameOf(golden, index), golden] as const))('%s', (_, golden) => {
    const exchange = exchangeOf(paths[golden.client], golden.ask)

    if (golden.refused) {
      try {
        requestOf(exchange, golden, 'node-model')
        throw new Error('was not refused')
      } catch (error) {
        expect(error).toBeInstanceOf(RouterError)
        expect(error).toMatchObject({ code: golden.refused.code, details: { param: golden.refused.param } })
      }
      return
    }
    const request = requestOf(exchange, golden, 'node-model')

    expect<unknown>({ path: request.path, body: JSON.parse(new TextDecoder().decode(request.body)) }).toEqual(
      golden.sent,
    )
  })
})

describe('what a client is told, however its bytes arrive (BL-I01)', () => {
  const answered = goldens.filter(({ answer }) => answer !== undefined)

  test.each(answered.map((golden, index) => [nameOf(golden, index), golden] as const))('%s', (_, golden) => {
    const { bytes, told, transform } = answerOf(golden)

    expect(run(transform(), [bytes])).toBe(told)
    for (const pieces of cuts(bytes)) expect(run(transform(), pieces)).toBe(told)
  })
})

test('every row of the tables has an exchange in each of its directions', () => {
  const missing = Object.entries(rows).flatMap(([row, directions]) =>
    [...directions]
      .filter(
        (direction) =>
          !goldens.some(
            (golden) => `${golden.table} ${golden.row}` === row && (golden.node === 'ollama') === (direction === '>'),
          ),
      )
      .map((direction) => `${row} ${direction}`),
  )

  expect(missing).toEqual([])
  expect(goldens.map(({ table, row }) => `${table} ${row}`).filter((row) => !(row in rows))).toEqual([])
})
