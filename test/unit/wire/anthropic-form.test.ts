import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { encode } from '../../../src/wire/bytes'
import { createAnthropicForm, tellStopSequence } from '../../../src/wire/relay/anthropic-form'
import { text } from './golden'

const event = (type: string, data: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const start = (index: number, type = 'text') => event('content_block_start', { index, content_block: { type } })
const said = (index: number) => event('content_block_delta', { index, delta: { type: 'text_delta', text: 'x' } })
const stop = (index: number) => event('content_block_stop', { index })
const signed = (index: number) =>
  event('content_block_delta', { index, delta: { type: 'signature_delta', signature: '' } })

/** The events one by one, as they come. */
const formed = (...events: readonly string[]): string => {
  const form = createAnthropicForm()
  return events.map((each) => text(form(encode(each)))).join('')
}

describe('the blocks of a passed-on Anthropic stream', () => {
  test('stay as they are where each is closed before the next begins, also all at once', () => {
    const events = [start(0, 'thinking'), signed(0), stop(0), start(1), said(1), stop(1)]

    expect(formed(...events)).toBe(events.join(''))
    expect(formed(events.join(''))).toBe(events.join(''))
  })

  test('are the very same bytes where no block begins or ends', () => {
    const bytes = encode(said(0) + said(0))

    expect(createAnthropicForm()(bytes)).toBe(bytes)
  })

  test('never overlap, however late the engine closes them, and lose nothing that they say', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('text', 'thinking', 'tool_use'), { maxLength: 6 }), (kinds) => {
        const begun = kinds.flatMap((kind, index) => [start(index, kind), said(index), said(index)])
        const closed = kinds.flatMap((kind, index) => [...(kind === 'thinking' ? [signed(index)] : []), stop(index)])

        expect(formed(...begun, ...closed)).toBe(
          kinds
            .flatMap((kind, index) => [
              start(index, kind),
              said(index),
              said(index),
              ...(kind === 'thinking' ? [signed(index)] : []),
              stop(index),
            ])
            .join(''),
        )
      }),
    )
  })
})

describe('an error in a passed-on Anthropic stream', () => {
  test('takes the form of the protocol where the engine tells the bare object', () => {
    const bare = 'event: error\ndata: {"code":500,"message":"Compute error.","type":"server_error"}\n\n'

    expect(formed(bare)).toBe(event('error', { error: { type: 'api_error', message: 'Compute error.' } }))
  })

  test('stays as it is where it has that form', () => {
    const whole = event('error', { error: { type: 'overloaded_error', message: 'Busy.' }, request_id: 'a' })

    expect(formed(whole)).toBe(whole)
  })
})

describe('an end at a stop sequence', () => {
  const ended = (reason: string, sequence: string | null) =>
    event('message_delta', { delta: { stop_reason: reason, stop_sequence: sequence }, usage: { output_tokens: 1 } })

  test('is told as such, in a stream and in one piece', () => {
    expect(formed(ended('end_turn', 'END'))).toBe(ended('stop_sequence', 'END'))
    expect(text(tellStopSequence(encode('{"stop_reason":"end_turn","stop_sequence":"END"}')))).toBe(
      '{"stop_reason":"stop_sequence","stop_sequence":"END"}',
    )
  })

  test('is not taken for one where there was none, whatever the answer says', () => {
    const said = JSON.stringify({ text: '"stop_reason":"end_turn","stop_sequence":"END"', stop_reason: 'end_turn' })

    expect(formed(ended('end_turn', null))).toBe(ended('end_turn', null))
    expect(text(tellStopSequence(encode(said)))).toBe(said)
  })
})
