import { afterAll, beforeAll, expect, test } from 'bun:test'
import { binary, buildTimeoutMs, until } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { model, type Rig, startRig, startTimeoutMs } from './two-llamas'

describeWithEngine('OpenAI SDK on responses, two llama-servers', () => {
  let rig: Rig

  beforeAll(async () => {
    await binary()
    rig = await startRig()
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  const tool = {
    type: 'function' as const,
    name: 'weather',
    description: 'Weather of a city',
    strict: false,
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  }

  test('answers whole, with the usage that the engine counted', async () => {
    const response = await rig.openai.responses.create({
      model,
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'Use English.' },
        { role: 'user', content: 'Say hello.' },
      ],
      max_output_tokens: 12,
    })

    expect(response.output_text).not.toBe('')
    expect(['completed', 'incomplete']).toContain(response.status ?? '')
    expect(response.usage?.input_tokens).toBeGreaterThan(10)
    expect(response.usage?.output_tokens).toBeGreaterThan(0)
  })

  test('streams: the client sums the events up to the final response', async () => {
    const stream = rig.openai.responses.stream({ model, input: 'Say hello.', max_output_tokens: 12 })
    let text = ''
    for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta
    const response = await stream.finalResponse()

    expect(text).not.toBe('')
    expect(response.output_text).toBe(text)
    expect(response.usage?.output_tokens).toBeGreaterThan(0)
  })

  test('tools for a model that cannot call any are a 400 that says so', async () => {
    const asking = rig.openai.responses.create({
      model,
      input: 'What is the weather in Oslo?',
      tools: [tool, { type: 'namespace', name: 'geo', description: 'Places', tools: [{ ...tool, name: 'find' }] }],
    })
    const failure: unknown = await asking.catch((error: unknown) => error)

    expect(failure).toMatchObject({ status: 400, message: expect.stringContaining('does not support tools') })
  })

  test('JSON of a schema parses', async () => {
    const response = await rig.openai.responses.create({
      model,
      input: 'Name a city.',
      text: {
        format: { type: 'json_schema', name: 'city', schema: { ...tool.parameters, additionalProperties: false } },
      },
      max_output_tokens: 64,
    })

    if (response.status === 'completed') expect(JSON.parse(response.output_text)).toHaveProperty('city')
    else expect(response.output_text).toStartWith('{')
  })

  test('an unknown model is the 404 that the SDK knows, a prompt that is too long the 400', async () => {
    const failureOf = (input: string, asked: string): Promise<unknown> =>
      rig.openai.responses.create({ model: asked, input }).catch((error: unknown) => error)

    expect(await failureOf('Hi.', 'nobody-has-this')).toMatchObject({ status: 404, code: 'model_not_found' })
    expect(await failureOf('word '.repeat(20_000), model)).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    })
  })

  test('a client that leaves stops the computation at the engine within a second', async () => {
    const leaving = new AbortController()
    const stream = await rig.openai.responses.create(
      { model, input: 'Count in words, one number after the other.', stream: true, max_output_tokens: 1_500 },
      { signal: leaving.signal },
    )
    for await (const event of stream) if (event.type === 'response.output_text.delta') break

    leaving.abort()

    await until(rig.processing, (running) => running === 0, 1_000)
  })

  test('a prompt is completed as it stands, whole and streamed', async () => {
    const ask = { model, prompt: 'One, two, three,', max_tokens: 6 }
    const whole = await rig.openai.completions.create(ask)
    const chunks = await Array.fromAsync(await rig.openai.completions.create({ ...ask, stream: true }))

    expect(whole).toMatchObject({ object: 'text_completion', model })
    expect(whole.choices[0]?.text).not.toBe('')
    expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).not.toBe('')
    expect(chunks.filter(({ choices }) => choices[0]?.finish_reason)).toHaveLength(1)
  })
})
