import { expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host } from '../support/host'

/** An Ollama with the model on disk, trained for 8192 tokens, and in memory with this window. */
const ollama = (contextTokens?: number): NodeReport => ({
  models: [{ name: 'm', maxContextTokens: 8_192 }],
  resident: contextTokens === undefined ? [] : [{ name: 'm', state: 'ready', slots: 4, contextTokens }],
  canLoad: true,
  canUnload: true,
})

const kind = { kind: 'ollama' } as const

test('BL-X02 whoever joins a load meets its window, whether it asked for less or for none', async () => {
  const { gateway, submit, ready, clock } = host({ a: ollama() }, { describe: () => ({ ...kind, maxConcurrency: 4 }) })
  await ready()
  submit({ contextTokens: 4_096 })
  submit()
  submit({ contextTokens: 2_048 })
  await clock.advance(0)

  gateway.loads[0]?.done()
  await clock.advance(0)

  expect(gateway.loads.map(({ options }) => options.contextTokens)).toEqual([4_096])
  expect(gateway.running.map(({ call }) => call.contextTokens)).toEqual([4_096, 4_096, 4_096])
})

test('BL-X01 a wish for more than the model was trained for is met by its whole window, without a load', async () => {
  const { gateway, submit, ready, clock } = host({ a: ollama(8_192) }, { describe: () => kind })
  await ready()

  submit({ contextTokens: 65_536 })
  await clock.advance(0)

  expect(gateway.loads).toEqual([])
  expect(gateway.running.map(({ call }) => call.contextTokens)).toEqual([8_192])
})
