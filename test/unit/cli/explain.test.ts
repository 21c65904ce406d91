import { expect, test } from 'bun:test'
import { explain } from '../../../src/cli/explain'
import type { DecisionRecord } from '../../../src/domain/record'
import { renderExplain } from '../../../src/observe/explain'
import { args, reply, terminal } from './terminal'

const record: DecisionRecord = {
  id: 'req_8k2m',
  at: 0,
  asked: {
    model: 'qwen',
    dialect: 'openai',
    operation: 'openai.chat',
    stream: false,
    priority: 'normal',
    tags: [],
    promptTokens: { value: 3, basis: 'estimated' },
  },
  models: ['qwen'],
  rounds: [
    {
      atMs: 0,
      cause: 'arrival',
      policy: 'residency',
      nodes: [
        { verdict: 'ranked', node: 'rig', model: 'qwen', rank: [0, 1], terms: { cold: 0, in_flight: 1 } },
        { verdict: 'eliminated', node: 'pi-5', model: 'qwen', reason: 'memory_fit', need: 18.6, have: 7.2, unit: 'GB' },
      ],
      decision: { kind: 'start', node: 'rig', model: 'qwen', reason: 'resident' },
    },
  ],
  phases: [{ name: 'placing', fromMs: 0, toMs: 1 }],
  failures: [],
  version: '1.3.0',
}

const answers = {
  '/api/v1/requests/req_8k2m': () => reply(record),
  '/api/v1/requests/last': () => reply(record),
}

test.each(['req_8k2m', 'last'])('explain %s prints the record as its sentences', async (id) => {
  const { io, printed } = terminal(answers)

  expect(await explain(args([id]), io)).toBe(0)

  expect(printed()).toBe(`${renderExplain(record).trimEnd()}\n`)
  expect(printed()).toContain('needs 18.6 GB, has 7.2 GB')
})

test('--why-not answers for one node', async () => {
  const { io, printed } = terminal(answers)

  await explain(args(['last'], { 'why-not': 'pi-5' }), io)

  expect(printed()).toBe('why not pi-5?  pi-5 needs 18.6 GB, has 7.2 GB\n')
})

test('--json has the record, the reason, and the answer to --why-not', async () => {
  const { io, printed } = terminal(answers)

  await explain(args(['last'], { json: true, 'why-not': 'pi-5' }), io)

  expect(JSON.parse(printed())).toMatchObject({
    record,
    because: { code: 'resident' },
    whyNot: { kind: 'eliminated', need: 18.6 },
  })
})

test('an unknown request exits 6 and prints nothing to stdout', async () => {
  const { io, printed, complained } = terminal(answers)

  expect(await explain(args(['req_none']), io)).toBe(6)

  expect(printed()).toBe('')
  expect(complained()).toBe('fleet: There is no such thing.\n')
})
