import { afterAll, beforeAll, expect, test } from 'bun:test'
import { binary, buildTimeoutMs } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { metric, model, type Rig, startRig, startTimeoutMs } from './two-llamas'

const CLIENTS = 6
const STREAMS_EACH = 6

describeWithEngine('more clients than slots', () => {
  let rig: Rig

  beforeAll(async () => {
    await binary()
    rig = await startRig()
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  // A llama-server hangs up after each stream, at the very moment in which whoever waits for its slot is sent.
  test('BL-V02 streams that wait for each other on one llama-server are all answered', async () => {
    const ask = async (): Promise<string | null | undefined> => {
      const stream = await rig.openai.chat.completions.create(
        { model, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 3, stream: true },
        { headers: { 'x-fleet-node': 'left' } },
      )
      const chunks = await Array.fromAsync(stream)
      return chunks.at(-1)?.choices[0]?.finish_reason
    }
    const client = async () => {
      const ends: unknown[] = []
      for (let at = 0; at < STREAMS_EACH; at += 1) ends.push(await ask())
      return ends
    }

    const ends = (await Promise.all(Array.from({ length: CLIENTS }, client))).flat()

    expect(ends.filter((end) => end !== 'length' && end !== 'stop')).toEqual([])
    // One that meets a dead connection shows what kind of server it is; one more may be on its way meanwhile.
    expect(await metric(rig.fleet, 'fleet_retries_total', {})).toBeLessThanOrEqual(2)
  }, 60_000)
})
