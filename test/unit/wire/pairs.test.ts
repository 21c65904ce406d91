import { describe, expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { differingCut, paths, run, timing } from './golden'
import type { Client, Pair } from './pairs'
import {
  answerAt,
  engineFiles,
  fileOf,
  nodes,
  pairsFolder,
  play,
  readEngine,
  readPair,
  records,
  requestFor,
  writeOutcome,
} from './pairs'

/**
 * Rows are pairs, by the file of their goldens; columns are scenarios, by the name of the golden in it. `+` has a golden, a
 * letter is a reason why there can be none.
 *
 * - `plain`, `tools`, `image`: in one piece; the others are streamed.
 * - `tools` also sends the history of an earlier call, `reasoning` that of an earlier thought, `parallel-tools` answers two calls.
 * - `refused`: the engine's own 400. `error-first`: an error where the stream should begin. `error-later`: one after some text.
 *   `cut-off`: the stream ends without its end marker.
 */
const matrix = `
                                  plain streamed tools parallel-tools image reasoning length refused error-first error-later cut-off
openai.chat-openai.txt            +     +        +     +              +     +         +      +       +           +           +
openai.chat-ollama.txt            +     +        +     +              +     +         +      +       +           +           +
openai.responses-openai.txt       +     +        +     +              +     +         +      +       +           +           +
openai.responses-ollama.txt       +     +        +     +              +     +         +      +       +           +           +
openai.completions-openai.txt     +     +        t     t              i     r         +      +       +           +           +
openai.completions-ollama.txt     +     +        t     t              i     r         +      +       +           +           +
ollama.chat-openai.txt            +     +        +     +              +     +         +      +       +           +           +
ollama.chat-ollama.txt            +     +        +     +              +     +         +      +       +           +           +
ollama.generate-openai.txt        +     +        t     t              +     +         +      +       +           +           +
ollama.generate-ollama.txt        +     +        t     t              +     +         +      +       +           +           +
native.job-openai.txt             +     +        +     +              +     +         +      +       +           +           +
native.job-ollama.txt             +     +        +     +              +     +         +      +       +           +           +
anthropic.messages-openai.txt     +     +        +     +              +     +         +      +       +           +           +
anthropic.messages-ollama.txt     +     +        +     +              +     +         +      +       +           +           +
anthropic.messages-anthropic.txt  +     +        +     +              +     +         +      +       +           +           +
`

const reasons: Readonly<Record<string, string>> = {
  t: 'a prompt has no tools in this protocol',
  i: 'a prompt is text alone in this protocol',
  r: 'this protocol has one text, and no place for another',
}

/** Pairs that never meet. A Responses endpoint of a node is used by nobody: every engine's deviates. */
const neverMeet: readonly Client[] = [
  'openai.chat',
  'openai.responses',
  'openai.completions',
  'ollama.chat',
  'ollama.generate',
  'native.job',
]

const [head = '', ...rows] = matrix.trim().split('\n')
const scenarios = head.trim().split(/\s+/)

const pairs: readonly (Pair & { readonly cells: readonly string[] })[] = rows.map((row) => {
  const [file = '', ...cells] = row.split(/\s+/)
  const [, client, node] = /^(.+)-(.+)\.txt$/.exec(file) ?? []
  return { client: client as Client, node: node as Pair['node'], cells }
})

const goldensOf = ({ cells }: { readonly cells: readonly string[] }): string[] =>
  scenarios.filter((_, column) => cells[column] === '+')

describe('the matrix', () => {
  test('has a cell for each scenario of each pair: a golden or a reason', () => {
    for (const { cells } of pairs) {
      expect(cells).toHaveLength(scenarios.length)
      expect(cells.filter((cell) => cell !== '+' && !(cell in reasons))).toEqual([])
    }
    expect(new Set(pairs.map(({ client }) => client))).toEqual(new Set(Object.keys(paths) as Client[]))
  })

  test('has no golden missing, and none left over', async () => {
    expect((await readdir(pairsFolder)).sort()).toEqual(pairs.map(fileOf).sort())
    for (const pair of pairs) expect([...(await readPair(pair)).keys()]).toEqual(goldensOf(pair))
  })

  test('hears every answer of every engine', async () => {
    const heard = new Set<string>()
    for (const pair of pairs)
      for (const [scenario, [asked]] of await readPair(pair))
        heard.add(`${requestFor(pair, JSON.parse(asked?.body ?? '')).request.path} ${scenario}`)

    const answers = await Promise.all(engineFiles.map(async (file) => (await readEngine(file)).size))
    expect(heard.size).toBe(answers.reduce((sum, size) => sum + size, 0))
  })

  test.each(neverMeet)('%s is put to a node with an Anthropic endpoint in the words of OpenAI', async (client) => {
    const [asked] = (await readPair({ client, node: 'openai' })).get('streamed') ?? []
    const { request } = requestFor({ client, node: 'anthropic' }, JSON.parse(asked?.body ?? ''))

    expect(nodes.anthropic.version).toBeString()
    expect(request.dialect).toBe('openai')
  })
})

describe.each(pairs.map((pair) => [`${pair.client} client, ${pair.node} node`, pair] as const))('%s', (_, pair) => {
  const read = async (scenario: string) => {
    const [asked, ...outcome] = (await readPair(pair)).get(scenario) ?? []
    const ask: unknown = JSON.parse(asked?.body ?? '')
    return { ask, outcome, answer: await answerAt(requestFor(pair, ask).request.path, scenario) }
  }

  test.each(goldensOf(pair))('%s', async (scenario) => {
    const { ask, outcome, answer } = await read(scenario)

    expect(writeOutcome(await play(pair, ask, answer, records(answer)))).toEqual(outcome)
  })

  test.each(goldensOf(pair))('BL-I01 %s, wherever the bytes of the node are cut', async (scenario) => {
    const { ask, outcome, answer } = await read(scenario)

    if (answer.status === 200) {
      const cut = differingCut(answer.body, (pieces) => {
        const { exchange, request } = requestFor(pair, ask)
        const reply = exchange.reply(request, 'node-model', timing(), answer.contentType)
        const said = run(reply, pieces)
        return JSON.stringify({ said, complete: reply.complete(), problem: reply.problem(), usage: reply.usage() })
      })
      expect(cut).toBeUndefined()
    }
    const oneByOne = Array.from(answer.body, (byte) => new Uint8Array([byte]))
    expect(writeOutcome(await play(pair, ask, answer, oneByOne))).toEqual(outcome)
  })
})
