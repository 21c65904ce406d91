import { afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { APIError } from 'openai'
import { binary, buildTimeoutMs } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { currentPhase, longStream, metric, model, type Rig, startRig, startTimeoutMs } from './two-llamas'

describeWithEngine('an engine dies', () => {
  let rig: Rig

  beforeAll(() => binary(), buildTimeoutMs)
  beforeEach(async () => {
    rig = await startRig()
  }, startTimeoutMs)
  afterEach(() => rig?.stop())

  const terminals = (end: string) => metric(rig.fleet, 'fleet_requests_total', { outcome: end })

  test('before the first byte: the answer comes from the other node, and explain, record and metrics say so', async () => {
    // Whichever is chosen stands still, so that it can have sent nothing when it is killed.
    rig.left.kill('SIGSTOP')
    rig.right.kill('SIGSTOP')
    const answer = rig.openai.chat.completions
      .create({ model, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 8 })
      .withResponse()
    const chosen = await rig.lastRunning()
    const other = chosen.node === 'left' ? 'right' : 'left'

    rig.node(other).kill('SIGCONT')
    rig.node(chosen.node).kill('SIGKILL')
    const { data, response } = await answer

    expect(data.choices[0]?.message.content).toBeString()
    expect(response.headers.get('x-fleet-node')).toBe(other)
    expect(response.headers.get('x-fleet-retries')).toBe('1')

    const record = await rig.lastSettled()
    expect(record.id).toBe(chosen.id)
    expect(record.failures.map(({ node, retried }) => ({ node, retried }))).toEqual([
      { node: chosen.node, retried: true },
    ])
    expect(record.outcome).toMatchObject({ end: 'completed', status: 200, node: other, retries: 1 })

    const { stdout } = await rig.fleet.cli('explain', 'last')
    expect(stdout).toContain(chosen.node)
    expect(stdout).toContain(other)
    expect(stdout).toMatch(/reset|closed/)

    expect(await metric(rig.fleet, 'fleet_retries_total', { node: chosen.node })).toBe(1)
    expect(await metric(rig.fleet, 'fleet_requests_total', {})).toBe(1)
    expect(await terminals('completed')).toBe(1)
  }, 60_000)

  test('after five streamed tokens: the in-band error, no second try, one terminal status', async () => {
    const stream = await longStream(rig.openai)
    const node = currentPhase(await rig.last())?.node ?? ''
    let tokens = 0

    const failure = await (async () => {
      try {
        for await (const chunk of stream) {
          if (chunk.choices[0]?.delta.content && ++tokens === 5) rig.node(node).kill('SIGKILL')
        }
        return undefined
      } catch (error) {
        return error
      }
    })()

    expect(tokens).toBeGreaterThanOrEqual(5)
    // The SDK makes this error of an `error` event in the stream; a broken connection would be another class.
    expect(failure).toBeInstanceOf(APIError)
    expect((failure as APIError).error).toMatchObject({ type: 'server_error', message: expect.stringContaining(node) })

    const record = await rig.lastSettled()
    expect(record.failures.map(({ retried }) => retried)).toEqual([false])
    expect(record.outcome).toMatchObject({ end: 'incomplete', node, retries: 0 })

    expect((await rig.fleet.cli('explain', 'last')).stdout).toContain('incomplete')
    expect(await metric(rig.fleet, 'fleet_requests_total', {})).toBe(1)
    expect(await terminals('incomplete')).toBe(1)
  }, 60_000)
})
