import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import completions from '../../fixtures/wire/completions.json'
import answers from '../../fixtures/wire/responses-answers.json'
import requests from '../../fixtures/wire/responses-requests.json'
import type { Golden } from './golden'
import { exchangeOf, requestOf, run, timing } from './golden'
import { describeGoldens, underNoise } from './golden-suite'

const goldens = [...requests, ...answers, ...completions] as Golden[]

/** The rows of the translation tables, and the kinds of node that each was recorded with. */
const rows: Readonly<Record<string, string>> = {
  '2.3 plain': 'openai ollama',
  '2.3 suffix': 'openai ollama',
  '2.3 one prompt in a list': 'openai ollama',
  '2.3 several prompts': 'openai ollama',
  '2.3 token numbers': 'openai ollama',
  '2.3 lists of token numbers': 'openai ollama',
  '2.3 several answers': 'openai ollama',
  '2.3 logprobs': 'openai ollama',
  '2.3 stream': 'openai ollama',
  '2.3 no prompt': 'openai ollama',
  '2.3 answer': 'ollama',
  '2.3 answer without usage': 'ollama',
  '2.3 answer whole': 'ollama',
  '2.3 echo': 'ollama',
  '2.3 echo whole': 'ollama',
  '2.3 logprobs in the answer': 'ollama',
  '2.3 cut off': 'ollama',
  '2.6 plain': 'openai ollama',
  '2.6 whole': 'openai ollama',
  '2.6 tool': 'openai ollama',
  '2.6 tool whole': 'openai ollama',
  '2.6 tool without arguments': 'openai ollama',
  '2.6 parallel tools interleaved': 'openai',
  '2.6 parallel tools': 'ollama',
  '2.6 custom tool': 'openai ollama',
  '2.6 custom tool called in plain text': 'openai',
  '2.6 tools of a namespace': 'openai',
  '2.6 reasoning': 'openai ollama',
  '2.6 reasoning inline': 'openai ollama',
  '2.6 reasoning whole': 'openai ollama',
  '2.6 logprobs': 'openai ollama',
  '2.6 length': 'openai ollama',
  '2.6 length whole': 'openai ollama',
  '2.6 length inside the second call': 'openai',
  '2.6 BL-P10 length spent on reasoning': 'openai ollama',
  '2.6 content filter': 'openai',
  '2.6 empty answer': 'openai ollama',
  '2.6 error before the first byte': 'openai ollama',
  '2.6 error after the first byte': 'openai ollama',
  '2.6 BL-S07 cut off': 'openai ollama',
  '2.6 BL-P09 previous response': 'openai ollama',
  '2.6 BL-P09 conversation': 'openai ollama',
  '2.6 stored prompt': 'openai ollama',
  '2.6 background': 'openai ollama',
  '2.6 no input': 'openai ollama',
  '2.6 empty input': 'openai ollama',
  '7.1 input text': 'openai ollama',
  '7.1 instructions': 'openai ollama',
  '7.1 instructions and leading system': 'openai ollama',
  '7.1 later system': 'openai ollama',
  '7.1 several text parts': 'openai ollama',
  '7.1 assistant text': 'openai ollama',
  '7.1 reasoning': 'openai ollama',
  '7.1 reasoning without an answer': 'openai ollama',
  '7.1 calls of one turn': 'openai ollama',
  '7.1 calls of several turns': 'openai ollama',
  '7.1 custom call': 'openai ollama',
  '7.1 call in a namespace': 'openai ollama',
  '7.1 calls of built-in tools': 'openai ollama',
  '7.1 items that are not known': 'openai ollama',
  '7.1 item reference': 'openai ollama',
  '7.1 wrong role': 'openai ollama',
  '7.1 item that is none': 'openai ollama',
  '7.2 image': 'openai ollama',
  '7.2 https URL': 'openai ollama',
  '7.2 uploaded image': 'openai ollama',
  '7.2 image in tool result': 'openai ollama',
  '7.2 file': 'openai ollama',
  '7.3 definition': 'openai ollama',
  '7.3 custom tool': 'openai ollama',
  '7.3 namespace': 'openai ollama',
  '7.3 long and odd names': 'openai ollama',
  '7.3 hosted tools': 'openai ollama',
  '7.3 choice auto': 'openai ollama',
  '7.3 choice none': 'openai ollama',
  '7.3 choice required': 'openai ollama',
  '7.3 choice function': 'openai ollama',
  '7.3 choice custom': 'openai ollama',
  '7.3 choice in a namespace': 'openai ollama',
  '7.3 choice allowed': 'openai ollama',
  '7.3 choice hosted': 'openai ollama',
  '7.3 parallel off': 'openai ollama',
  '7.4 length': 'openai ollama',
  '7.4 sampling': 'openai ollama',
  '7.4 logprobs': 'openai ollama',
  '7.4 format schema': 'openai ollama',
  '7.4 format json': 'openai ollama',
  '7.4 format text': 'openai ollama',
  '7.4 members that are not known': 'openai ollama',
  '7.4 wrong type': 'openai ollama',
  '7.5 effort none': 'openai ollama',
  '7.5 effort high': 'openai ollama',
  '7.5 effort unknown': 'openai ollama',
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers whose shape is what they check
type Event = any

/** The events in order; throws on one that is none, or whose name is not its type. */
const eventsOf = (body: string): Event[] =>
  body
    .split('\n\n')
    .filter((event) => event.trim() !== '')
    .map((event) => {
      const [, name = '', data = ''] = /^event: ([\w.]+)\ndata: (.*)$/.exec(event) ?? []
      const parsed = JSON.parse(data)
      expect(parsed.type).toBe(name)
      return parsed
    })

describeGoldens(goldens, rows)

describe('whatever a node answers', () => {
  const streams = goldens.filter(({ client, answer, ask }) => {
    const { stream } = ask as { stream?: boolean }
    return client === 'openai.responses' && answer !== undefined && stream === true
  })

  test('broken, doubled and reordered records never throw, and never end well and badly at once', () => {
    underNoise(streams, (reply, told) => {
      const events = eventsOf(told)

      expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
      const endings = events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))
      expect(endings.length).toBe(reply.complete() || reply.problem() ? 1 : 0)
      if (endings.length > 0) expect(events.at(-1)).toBe(endings[0])
    })
  })

  test('BL-P08 every event of an item bears its id and its place, and the end repeats all that was told', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('text', 'thought', 'call'), fc.nat(3)), { maxLength: 30 }),
        (steps) => {
          const delta = (value: object): string =>
            `data: ${JSON.stringify({ choices: [{ index: 0, delta: value }] })}\n\n`
          const begun = new Set<number>()
          const record = (kind: string, index: number): string => {
            if (kind === 'text') return delta({ content: `t${index}` })
            if (kind === 'thought') return delta({ reasoning_content: `r${index}` })
            const isNew = !begun.has(index)
            begun.add(index)
            const fragment = { index, function: { arguments: `${index}` } }
            const head = {
              index,
              id: `call_${index}`,
              type: 'function',
              function: { name: `f${index}`, arguments: '' },
            }
            return (isNew ? delta({ tool_calls: [head] }) : '') + delta({ tool_calls: [fragment] })
          }
          const end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
          const body = steps.map(([kind, index]) => record(kind, index)).join('') + end
          const exchange = exchangeOf('/v1/responses', { model: 'm', input: 'hi', stream: true })
          const request = requestOf(exchange, { node: 'openai' }, 'm')

          const events = eventsOf(run(exchange.reply(request, 'm', timing()), [new TextEncoder().encode(body)]))

          const said = new Map<string, { place: number; text: string; isDone: boolean }>()
          for (const { type, output_index: place, item, item_id: id, delta: piece } of events) {
            if (type === 'response.output_item.added') {
              expect(place).toBe(said.size)
              said.set(item.id, { place, text: '', isDone: false })
            } else if (type === 'response.output_item.done') {
              expect(said.get(item.id)).toMatchObject({ place, isDone: false })
              Object.assign(said.get(item.id) as object, { isDone: true })
            } else if (id !== undefined) {
              expect(said.get(id)).toMatchObject({ place, isDone: false })
              if (piece !== undefined) Object.assign(said.get(id) as object, { text: said.get(id)?.text + piece })
            }
          }
          const { output } = events.at(-1)?.response ?? {}
          const textOf = (item: Event): string =>
            item.arguments ?? item.summary?.[0].text ?? item.content?.map((part: Event) => part.text).join('')
          expect(output.map((item: Event) => [item.id, textOf(item)])).toEqual(
            [...said].map(([id, { text }]) => [id, text]),
          )
          expect([...said.values()].every(({ isDone }) => isDone)).toBe(true)
          expect(new Set(events.flatMap(({ response }) => response?.id ?? [])).size).toBe(1)
        },
      ),
    )
  })
})
