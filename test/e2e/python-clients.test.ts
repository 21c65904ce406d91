import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { binary, buildTimeoutMs } from '../support/binary'
import { type ClientCheck, describeWithPython, runClients } from '../support/python'
import { type FakeRig, modelsWithTools, startFakeRig } from './two-fakes'
import { type Rig, startRig, startTimeoutMs } from './two-llamas'

const clients = ['openai, chat', 'openai, responses', 'anthropic', 'ollama']
const checksTimeoutMs = 60_000

/** All checks ran for this client, and none found a problem. */
const expectAllHold = (results: readonly ClientCheck[], client: string, checks: readonly string[]): void => {
  expect(results.filter((result) => result.client === client)).toEqual(
    checks.map((check) => ({ client, check, problem: null })),
  )
}

describeWithPython('Python clients', (python) => {
  describe('two llama-servers', () => {
    let rig: Rig
    let results: readonly ClientCheck[]

    beforeAll(
      async () => {
        await binary()
        rig = await startRig()
        results = await runClients(python, 'engine', rig.fleet.url, rig.left.url, rig.right.url)
      },
      buildTimeoutMs + startTimeoutMs + checksTimeoutMs,
    )
    afterAll(() => rig?.stop())

    test.each(clients)('%s: answers, streams, stops when left, and says what is wrong', (client) => {
      expectAllHold(results, client, [
        'answers_whole',
        'streams',
        'stops_when_left',
        'refuses_an_unknown_model',
        'refuses_a_long_prompt',
        'refuses_tools',
      ])
    })

    test('those that leave are recorded as such, the others are whole', async () => {
      const { requests } = await rig.fleet.json<{ requests: { outcome?: { end: string } }[] }>('/api/v1/requests')
      const ends = requests.map(({ outcome }) => outcome?.end)
      const left = ends.filter((end) => end === 'client_disconnected').length
      const whole = ends.filter((end) => end === 'completed').length

      // A client may hang up at the end marker of a whole answer, a moment before the engine has closed it.
      expect(left).toBeGreaterThanOrEqual(clients.length)
      expect(left + whole).toBe(3 * clients.length)
    })
  })

  describe('unlike engines', () => {
    let rig: FakeRig
    let results: readonly ClientCheck[]

    beforeAll(async () => {
      await binary()
      rig = await startFakeRig()
      results = await runClients(python, 'tools', rig.fleet.url, ...modelsWithTools)
    }, buildTimeoutMs + checksTimeoutMs)
    afterAll(() => rig?.stop())

    test.each(clients)('%s: is told the call of a tool, answers it and gets an answer', (client) => {
      expectAllHold(results, client, ['calls_tools'])
    })
  })
})
