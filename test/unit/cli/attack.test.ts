import { expect, test } from 'bun:test'
import { explain } from '../../../src/cli/explain'
import { clip } from '../../../src/cli/table'
import type { DecisionRecord } from '../../../src/domain/record'
import { args, reply, terminal } from './terminal'

const evil = 'm\u001b]0;pwned\u0007\u009b31m\u202e\r\u2028'

const record: DecisionRecord = {
  id: 'req_1',
  at: 0,
  asked: {
    model: evil,
    dialect: 'openai',
    operation: 'openai.chat',
    stream: false,
    priority: 'normal',
    tags: [],
    promptTokens: { value: 3, basis: 'estimated' },
  },
  models: [evil],
  rounds: [],
  phases: [],
  failures: [],
  version: '1.3.0',
}

/** What a terminal would act on. */
const commands = /[^\P{Cc}\n]|[\p{Zl}\p{Zp}\u202a-\u202e]/u

test('a name in a record gives the terminal no command', async () => {
  const { io, printed } = terminal({ '/api/v1/requests/last': () => reply(record) })

  await explain(args(['last']), io)

  expect(printed()).toContain('m\ufffd]0;pwned')
  expect(printed()).not.toMatch(commands)
})

test('nor does what the router says about a failure', async () => {
  const { io, complained } = terminal({ '/api/v1/requests/last': () => reply({ fleet: { message: evil } }, 404) })

  await explain(args(['last']), io)

  expect(complained()).toContain('pwned')
  expect(complained()).not.toMatch(commands)
})

test('nor does a cell of a table, which stays one line', () => {
  expect(clip(`${evil}\nforged`, 80)).not.toMatch(commands)
  expect(clip('a\nb', 80)).toBe('a\ufffdb')
})
