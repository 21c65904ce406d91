import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Frame, Framer } from '../../../src/wire/lines'
import { createNdjsonFramer } from '../../../src/wire/ndjson'
import { createSseFramer } from '../../../src/wire/sse'
import { createThinkSplitter } from '../../../src/wire/think-tags'
import { rfc3339 } from '../../../src/wire/time'
import { cuts } from './golden'

const frames = (framer: Framer, pieces: readonly Uint8Array[]): Frame[] => [
  ...pieces.flatMap((piece) => framer.push(piece)),
  ...framer.end(),
]

test.each([
  ['one event', 'data: a\n\n', [{ data: 'a' }]],
  ['no space after the colon', 'data:a\n\n', [{ data: 'a' }]],
  ['only one space is taken', 'data:  a\n\n', [{ data: ' a' }]],
  ['carriage returns', 'data: a\r\n\r\ndata: b\r\n\r\n', [{ data: 'a' }, { data: 'b' }]],
  ['comments and unknown fields', ': ping\n\nid: 7\nretry: 1\ndata: a\n\n', [{ data: 'a' }]],
  ['several data lines', 'data: a\ndata\ndata: b\n\n', [{ data: 'a\n\nb' }]],
  ['an event name', 'event: error\ndata: a\n\ndata: b\n\n', [{ data: 'a', event: 'error' }, { data: 'b' }]],
  ['no blank line at the end', 'data: a\n\ndata: b', [{ data: 'a' }, { data: 'b' }]],
  ['a byte order mark', '\uFEFFdata: a\n\n', [{ data: 'a' }]],
  ['BL-I01 characters of every width', 'data: 北京今天多云 🌍 👩‍👩‍👧 é\n\n', [{ data: '北京今天多云 🌍 👩‍👩‍👧 é' }]],
])('server-sent events, wherever they are cut: %s', (_, stream, expected) => {
  for (const pieces of cuts(new TextEncoder().encode(stream)))
    expect(frames(createSseFramer(), pieces)).toEqual(expected)
})

test.each([
  ['lines', '{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']],
  ['blank lines and carriage returns', '\n{"a":1}\r\n\r\n', ['{"a":1}']],
  ['no line end at the end', '{"a":1}\n{"b"', ['{"a":1}', '{"b"']],
  ['BL-I01 characters of every width', '{"a":"é🌍北"}\n', ['{"a":"é🌍北"}']],
])('NDJSON, wherever it is cut: %s', (_, stream, expected) => {
  for (const pieces of cuts(new TextEncoder().encode(stream)))
    expect(frames(createNdjsonFramer(), pieces).map(({ data }) => data)).toEqual(expected)
})

test('BL-I01 bytes that are no UTF-8 do not stall the stream', () => {
  const stream = new Uint8Array([...new TextEncoder().encode('data: a'), 0xff, 0xc3, 0x0a, 0x0a])

  expect(frames(createSseFramer(), [stream])).toEqual([{ data: 'a\uFFFD\uFFFD' }])
})

const think = (pieces: readonly string[]): { reasoning: string; text: string } => {
  const split = createThinkSplitter()
  const said = { reasoning: '', text: '' }
  for (const event of [...pieces.map((text) => ({ type: 'text', text }) as const), { type: 'done' } as const].flatMap(
    split,
  ))
    if (event.type === 'text' || event.type === 'reasoning') said[event.type] += event.text
  return said
}

test.each([
  ['<think>hm</think>\n\nyes', 'hm', 'yes'],
  ['\n<think>\nhm < 3 </t </think>yes </think>', 'hm < 3 </t', 'yes </think>'],
  ['<think>never ends', 'never ends', ''],
  ['<thin air', '', '<thin air'],
  ['yes <think>no</think>', '', 'yes <think>no</think>'],
])('inline thinking is split off: %s', (answer, reasoning, text) => {
  expect(think([answer])).toEqual({ reasoning, text })
  expect(think([...answer])).toMatchObject({ text })
  expect(think([...answer]).reasoning.trim()).toBe(reasoning)
})

test('an answer without tags passes unchanged, however it is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (pieces) => {
      fc.pre(!pieces.join('').includes('think>'))
      expect(think(pieces)).toEqual({ reasoning: '', text: pieces.join('') })
    }),
  )
})

test('times are those of the calendar', () => {
  fc.assert(
    fc.property(fc.integer({ min: -2_000_000_000_000, max: 8_000_000_000_000 }), (ms) => {
      expect(rfc3339(ms)).toBe(new Date(ms).toISOString())
    }),
  )
})
