import { afterAll, beforeAll, expect, test } from 'bun:test'
import { binary, buildTimeoutMs, until } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { longStream, model, type Rig, startRig, startTimeoutMs } from './two-llamas'

describeWithEngine('OpenAI SDK, two llama-servers', () => {
  let rig: Rig

  beforeAll(async () => {
    await binary()
    rig = await startRig()
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  test('lists the model once, though two nodes have it', async () => {
    const ids = (await Array.fromAsync(rig.openai.models.list())).map(({ id }) => id)

    expect(ids).toEqual([model])
  })

  test('streams, with one id, one finish reason and the usage that was asked for', async () => {
    const stream = await rig.openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Say hello.' }],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 12,
    })
    const chunks = await Array.fromAsync(stream)

    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).not.toBe('')
    expect(chunks.filter((chunk) => chunk.choices[0]?.finish_reason)).toHaveLength(1)
    expect(chunks.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0)
  })

  test('answers whole, and the headers say where, why and under which id', async () => {
    const { data, response } = await rig.openai.chat.completions
      .create({ model, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 8 })
      .withResponse()

    expect(data.choices[0]?.message.content).toBeString()
    expect(['left', 'right']).toContain(response.headers.get('x-fleet-node') ?? '')
    expect(response.headers.get('x-fleet-why')).not.toBe('')
    expect((await rig.lastSettled()).id).toBe(response.headers.get('x-request-id') ?? '')
  })

  test('an unknown model is the 404 that the SDK knows', async () => {
    // Not `rejects`: to it the SDK's own kind of promise looks settled before it was sent.
    const failure: unknown = await rig.openai.chat.completions
      .create({ model: 'nobody-has-this', messages: [{ role: 'user', content: 'Hi.' }] })
      .catch((error: unknown) => error)

    expect(failure).toMatchObject({ status: 404, code: 'model_not_found' })
  })

  test('explain last shows each candidate with its rank terms', async () => {
    await rig.openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 2 })

    const { code, stdout } = await rig.fleet.cli('explain', 'last')
    const [round] = (await rig.lastSettled()).rounds

    expect(code).toBe(0)
    expect(stdout).toMatch(/left .*resident/)
    expect(stdout).toMatch(/right .*resident/)
    expect(round?.nodes.map(({ verdict }) => verdict)).toEqual(['ranked', 'ranked'])
  })

  test('explain last shows the reason of a node that could not be chosen', async () => {
    expect((await rig.fleet.cli('pause', 'left')).code).toBe(0)
    const { response } = await rig.openai.chat.completions
      .create({ model, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 2 })
      .withResponse()
    const { stdout } = await rig.fleet.cli('explain', 'last')
    expect((await rig.fleet.cli('resume', 'left')).code).toBe(0)

    expect(response.headers.get('x-fleet-node')).toBe('right')
    expect(stdout).toMatch(/left .*paused/)
  })

  test('requests at the same moment share both nodes', async () => {
    const ask = () =>
      rig.openai.chat.completions
        .create({ model, messages: [{ role: 'user', content: 'Count to five.' }], max_tokens: 16 })
        .withResponse()

    const nodes = (await Promise.all([ask(), ask()])).map(({ response }) => response.headers.get('x-fleet-node') ?? '')

    expect(nodes.toSorted()).toEqual(['left', 'right'])
  })

  test('a client that leaves stops the computation at the engine within a second', async () => {
    const leaving = new AbortController()
    const stream = await longStream(rig.openai, leaving.signal)
    let seen = 0
    for await (const _ of stream) if (++seen === 5) break
    expect(await rig.processing()).toBe(1)

    leaving.abort()

    await until(rig.processing, (running) => running === 0, 1_000)
    expect((await rig.lastSettled()).outcome?.end).toBe('client_disconnected')
  })
})
