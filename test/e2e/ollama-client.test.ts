import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Ollama } from 'ollama'
import { binary, buildTimeoutMs } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { model, type Rig, startRig, startTimeoutMs } from './two-llamas'

describeWithEngine('Ollama SDK, two llama-servers', () => {
  let rig: Rig
  let ollama: Ollama

  beforeAll(async () => {
    await binary()
    rig = await startRig()
    ollama = new Ollama({ host: rig.fleet.url })
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  const messages = [{ role: 'user', content: 'Say hello.' }]
  const options = { num_predict: 8 }

  test('chat, whole: one message, counts and durations', async () => {
    const answer = await ollama.chat({ model, messages, options })

    expect(answer).toMatchObject({ model, done: true, message: { role: 'assistant' } })
    expect(answer.message.content).not.toBe('')
    expect(answer.eval_count).toBeGreaterThan(0)
    expect(answer.total_duration).toBeGreaterThan(0)
  })

  test('chat, streamed: only the last line is done', async () => {
    const lines = await Array.fromAsync(await ollama.chat({ model, messages, options, stream: true }))

    expect(lines.length).toBeGreaterThan(2)
    expect(lines.map((line) => line.message.content).join('')).not.toBe('')
    expect(lines.filter((line) => line.done)).toEqual([lines.at(-1) as (typeof lines)[number]])
    expect(lines.at(-1)?.eval_count).toBeGreaterThan(0)
  })

  test('generate, whole and streamed', async () => {
    const whole = await ollama.generate({ model, prompt: 'Say hello.', options })
    const lines = await Array.fromAsync(await ollama.generate({ model, prompt: 'Say hello.', options, stream: true }))

    expect(whole).toMatchObject({ model, done: true })
    expect(whole.response).not.toBe('')
    expect(lines.map((line) => line.response).join('')).not.toBe('')
    expect(lines.at(-1)?.done).toBe(true)
  })

  test('list, show and ps know the model', async () => {
    const [listed, shown, running] = await Promise.all([ollama.list(), ollama.show({ model }), ollama.ps()])

    expect(listed.models.map(({ name }) => name)).toEqual([expect.stringContaining(model)])
    expect(shown.details).toBeObject()
    expect(shown.capabilities).toContain('completion')
    expect(running.models.map(({ name }) => name)).toEqual([expect.stringContaining(model)])
  })

  test('an unknown model is an Ollama error', async () => {
    const asking = ollama.chat({ model: 'nobody-has-this', messages })

    await expect(asking).rejects.toMatchObject({ status_code: 404, error: expect.stringContaining('nobody-has-this') })
  })
})
