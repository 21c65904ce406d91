import { expect, test } from 'bun:test'
import { checkAndApply } from '../../../src/cli/apply'
import type { Disk } from '../../../src/config/from-disk'
import { args, reply, terminal } from './terminal'

const disk = (text: string): Disk => ({ env: {}, cwd: '/', read: () => text, exists: () => true })
const PATH = '/api/v1/config/reload'

test('a valid file is applied, and every change is told', async () => {
  const changes = [{ key: 'policy.retries', from: 2, to: 3 }]
  const { io, asked, printed } = terminal({ [PATH]: () => reply({ changes, waiting: ['server.listen'] }) })

  const code = await checkAndApply(['--apply'], args([], { apply: true }), {
    disk: disk('[policy]\nretries = 3\n'),
    io,
  })

  expect(code).toBe(0)
  expect(asked).toMatchObject([{ method: 'POST', url: `http://127.0.0.1:11435${PATH}` }])
  expect(printed()).toBe('policy.retries  2 -> 3\nafter a restart only: server.listen\n')
})

test('a file that is wrong here never reaches the router', async () => {
  const { io, asked, complained } = terminal({})

  const code = await checkAndApply(['--apply'], args([], { apply: true }), { disk: disk('[polcy]\n'), io })

  expect(code).toBe(3)
  expect(asked).toEqual([])
  expect(complained()).toContain('polcy')
})

test('what the router refuses is said', async () => {
  const refusal = { outcome: 'rejected', fleet: { message: 'Line 3: unknown key "x"', hint: 'It stays.' } }
  const { io, complained } = terminal({ [PATH]: () => reply(refusal, 400) })

  const code = await checkAndApply(['--apply'], args([], { apply: true }), { disk: disk(''), io })

  expect(code).toBe(1)
  expect(complained()).toBe('fleet: Line 3: unknown key "x" It stays.\n')
})
