import { expect, test } from 'bun:test'
import { host, resident } from '../support/host'

/** One request whose first byte comes after 2 s and whose last after 4 s, with 20 tokens. */
const outcomeOf = async (stream: boolean) => {
  const { gateway, submit, ready, settled, clock } = host({ a: resident() })
  await ready()
  submit({ stream })
  await clock.advance(2_000)
  gateway.running[0]?.start()
  await clock.advance(2_000)
  gateway.running[0]?.finish({ tokensOut: 20 })
  await clock.advance(0)
  return settled()[0]?.outcome
}

test('a stream shows its decode rate: tokens over the time since its first byte', async () => {
  expect(await outcomeOf(true)).toMatchObject({ firstByteMs: 2_000, serviceMs: 4_000, tokensPerSecond: 10 })
})

test('an answer in one piece shows no decode rate, since nobody saw its first token', async () => {
  const outcome = await outcomeOf(false)

  expect(outcome).toMatchObject({ tokensOut: 20, serviceMs: 4_000 })
  expect(outcome).not.toHaveProperty('tokensPerSecond')
})
