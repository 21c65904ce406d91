import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import answers from '../../fixtures/wire/anthropic-answers.json'
import requests from '../../fixtures/wire/anthropic-requests.json'
import type { Golden } from './golden'
import { exchangeOf, requestOf, run, timing } from './golden'
import { describeGoldens, named, underNoise } from './golden-suite'

const goldens = [...requests, ...answers] as Golden[]

/** The rows of the translation tables, and the kinds of node that each was recorded with. */
const rows: Readonly<Record<string, string>> = {
  '7.1 leading system': 'openai ollama anthropic',
  '7.1 system blocks': 'openai ollama anthropic',
  '7.1 billing header': 'openai ollama anthropic',
  '7.1 later system': 'openai ollama anthropic',
  '7.1 user text': 'openai ollama anthropic',
  '7.1 assistant text': 'openai ollama anthropic',
  '7.1 assistant reasoning': 'openai ollama anthropic',
  '7.1 assistant tool calls': 'openai ollama anthropic',
  '7.1 tool results first': 'openai ollama anthropic',
  '7.1 alternation': 'openai ollama anthropic',
  '7.1 trailing assistant': 'openai ollama anthropic',
  '7.2 base64': 'openai ollama anthropic',
  '7.2 BL-M04 data URL': 'openai ollama',
  '7.2 bad base64': 'openai ollama',
  '7.2 https URL': 'openai ollama anthropic',
  '7.2 uploaded file': 'openai ollama',
  '7.2 image in tool result': 'openai ollama',
  '7.2 text document': 'openai ollama anthropic',
  '7.2 document of blocks': 'openai ollama',
  '7.2 PDF': 'openai ollama anthropic',
  '7.2 search result': 'openai ollama',
  '7.2 unknown block': 'openai ollama anthropic',
  '7.3 definition': 'openai ollama anthropic',
  '7.3 hosted tool': 'openai ollama anthropic',
  '7.3 choice auto': 'openai ollama anthropic',
  '7.3 choice any': 'openai ollama anthropic',
  '7.3 choice none': 'openai ollama anthropic',
  '7.3 choice tool': 'openai ollama anthropic',
  '7.3 choice without tools': 'openai ollama',
  '7.3 parallel off': 'openai ollama',
  '7.4 sampling': 'openai ollama anthropic',
  '7.4 format schema': 'openai ollama anthropic',
  '7.4 BL-P06 unknown members': 'openai ollama anthropic',
  '7.4 wrong type': 'openai ollama',
  '7.5 budget 1024': 'openai ollama',
  '7.5 budget 4096': 'openai ollama',
  '7.5 budget 16000': 'openai ollama',
  '7.5 enabled': 'anthropic',
  '7.5 adaptive': 'openai ollama anthropic',
  '7.5 disabled': 'openai ollama anthropic',
  '7.5 effort low': 'openai ollama anthropic',
  '7.5 effort medium': 'openai ollama',
  '7.5 effort high': 'openai ollama',
  '7.5 effort xhigh': 'openai ollama',
  '7.5 effort max': 'openai ollama',
  '7.5 output': 'openai ollama',
  '7.5 output whole': 'openai ollama',
  '7.5 inline': 'openai',
  '7.5 BL-P13 a second run': 'ollama',
  '7.5 BL-P10 all of it': 'openai ollama',
  '7.6 length': 'openai ollama',
  '7.6 content_filter': 'openai',
  '7.6 stop sequence': 'openai anthropic',
  '7.6 BL-S07 cut off': 'openai ollama',
  '7.6 error after the first byte': 'openai ollama anthropic',
  '7.6 error before the first byte': 'openai ollama anthropic',
  '7.7 none told': 'openai',
  '7.8 plain': 'openai ollama anthropic',
  '7.8 whole': 'openai ollama anthropic',
  '7.8 empty answer': 'openai ollama',
  '7.8 tool': 'openai ollama anthropic',
  '7.8 tool whole': 'openai ollama',
  '7.8 parallel tools interleaved': 'openai',
  '7.8 parallel tools': 'ollama',
  '7.8 tool without input': 'openai',
}

describeGoldens(goldens, rows)

describe('whatever a node answers', () => {
  const streams = goldens.filter(({ answer, ask }) => answer && (ask as { stream?: boolean }).stream === true)

  /** Types of the events, in order; throws on an event that is none. */
  const eventsOf = (body: string): string[] =>
    body
      .split('\n\n')
      .map((event) => event.trim())
      .filter((event) => event !== '')
      .map((event) => {
        const [, name = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? []
        expect(JSON.parse(data).type).toBe(name)
        return name
      })

  test.each(named(streams.filter(({ node }) => node !== 'anthropic')))(
    'the translated events stand in their order: %s',
    (_, golden) => {
      const events = eventsOf(golden.told?.map((event) => `${event}\n\n`).join('') ?? '')
      const told = events.filter((name) => name !== 'content_block_delta').join(' ')

      expect(told).toMatch(
        /^(message_start( content_block_start content_block_stop)*( content_block_start)? ?)?(message_delta message_stop|error)?$/,
      )
    },
  )

  test('broken, doubled and reordered records never throw, and never end well and badly at once', () => {
    underNoise(streams, (reply) => {
      const { tokensIn = 0, tokensOut = 0 } = reply.usage()
      expect(Number.isFinite(tokensIn) && Number.isFinite(tokensOut)).toBe(true)
    })
  })

  test('parallel calls in any interleaving come out one after the other, each with all of its input', () => {
    const inputs = ['{"city":"Oslo"}', '{}', '{"a":[1,{"b":"\\"}{"}]}']
    const base = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 6 })), { maxLength: 40 }), (steps) => {
        const exchange = exchangeOf('/v1/messages', base)
        const request = requestOf(exchange, { node: 'openai' }, 'm')
        const delta = (calls: object): string =>
          `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [calls] } }] })}\n\n`
        const left = [...inputs]
        const heads = inputs.map((_, index) =>
          delta({ index, id: `call_${index}`, type: 'function', function: { name: `f${index}`, arguments: '' } }),
        )
        const fragment = (index: number, size: number): string => {
          const text = left[index] ?? ''
          left[index] = text.slice(size)
          return text === '' ? '' : delta({ index, function: { arguments: text.slice(0, size) } })
        }
        const body = [
          ...heads,
          ...steps.map(([index, size]) => fragment(index, size)),
          ...inputs.map((_, index) => fragment(index, Number.POSITIVE_INFINITY)),
          'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
        ].join('')

        const said = run(exchange.reply(request, 'm', timing()), [new TextEncoder().encode(body)])

        const open = new Map<number, string>()
        let last = -1
        for (const line of said.split('\n').filter((each) => each.startsWith('data: '))) {
          const { type, index, delta: change } = JSON.parse(line.slice(6))
          if (type === 'content_block_start') {
            expect(index).toBe(++last)
            open.set(index, '')
          } else if (type === 'content_block_delta') {
            expect(index).toBe(last)
            open.set(index, open.get(index) + change.partial_json)
          }
        }
        expect([...open.values()]).toEqual(inputs)
      }),
    )
  })
})
