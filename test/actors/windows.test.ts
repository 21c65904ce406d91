import { expect, test } from 'bun:test'
import { host, resident } from '../support/host'

const copy = (contextTokens: number) => ({
  ...resident(),
  resident: [{ name: 'm', state: 'ready' as const, slots: 1, contextTokens }],
})
const tokens = (value: number) => ({ promptTokens: { value, basis: 'estimated' as const } })

test('long prompts wait for the node with the wide window, and short ones do not wait behind them', async () => {
  const fleet = host({ small: copy(8_192), wide: copy(32_768) })
  await fleet.ready()
  const startedOn = () => fleet.gateway.running.map(({ call }) => `${call.request} ${call.node.name}`)
  const first = fleet.submit(tokens(20_000)).job.id
  const second = fleet.submit(tokens(20_000)).job.id
  await fleet.clock.advance(0)
  expect(startedOn()).toEqual([`${first} wide`])

  const short = fleet.submit(tokens(100)).job.id
  await fleet.clock.advance(0)
  expect(startedOn()).toEqual([`${first} wide`, `${short} small`])

  for (const running of [...fleet.gateway.running]) {
    running.start()
    running.finish()
  }
  await fleet.clock.advance(0)
  expect(startedOn()).toEqual([`${second} wide`])
})
