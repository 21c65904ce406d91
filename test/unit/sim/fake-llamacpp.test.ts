import { expect, test } from 'bun:test'
import {
  askChat,
  chatText,
  fastModel,
  getJson,
  type Json,
  postJson,
  readJson,
  slowModel,
  until,
  withFakes,
} from '../../support/fakes'

test('one model: 503 on every route while it loads, then ready', () =>
  withFakes([{ kind: 'llamacpp', resident: [], models: [fastModel('m', { loadMs: 100 })] }], async (fake) => {
    for (const path of ['/health', '/props', '/v1/models']) {
      const answer = await getJson(`${fake!.url}${path}`)
      expect([answer.status, answer.json.error.type]).toEqual([503, 'unavailable_error'])
    }
    expect((await askChat(fake!)).status).toBe(503)

    await until(() => fake!.resident().length === 1)
    expect(await getJson(`${fake!.url}/health`)).toMatchObject({ status: 200, json: { status: 'ok' } })
  }))

test('one model: tells window, slots and size, and ignores the asked name', () =>
  withFakes(
    [{ kind: 'llamacpp', slots: 3, models: [slowModel('m', { sizeGb: 2, contextTokens: 4096 })], answerTokens: 1000 }],
    async (fake) => {
      const { headers, json } = await getJson(`${fake!.url}/props`)
      expect(headers.get('server')).toBe('llama.cpp')
      expect(json).toMatchObject({ total_slots: 3, default_generation_settings: { n_ctx: 4096 } })
      expect((await getJson(`${fake!.url}/v1/models`)).json.data[0]).toMatchObject({
        id: 'm',
        meta: { n_ctx: 4096, size: 2e9 },
      })

      const control = new AbortController()
      const answer = await askChat(fake!, { model: 'whatever', signal: control.signal })
      const slots = (await getJson(`${fake!.url}/slots`)).json
      expect(slots.map((slot: Json) => slot.is_processing)).toEqual([true, false, false])
      expect(answer.status).toBe(200)
      control.abort()
    },
  ))

test('a stream has role, content, finish, usage with timings and the end marker', () =>
  withFakes([{ kind: 'llamacpp', answerTokens: 2 }], async (fake) => {
    const text = await (await askChat(fake!, { more: { stream_options: { include_usage: true } } })).text()
    const events = text.trim().split('\n\n')
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)))

    expect(events.at(-1)).toBe('data: [DONE]')
    expect(chunks[0].choices[0].delta).toEqual({ role: 'assistant', content: '' })
    expect(chunks.at(-2).choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' })
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 2 }, timings: { predicted_n: 2 } })
    expect(chunks.at(-1).timings.predicted_per_second).toBeCloseTo(4000, -1)
    expect(await (await askChat(fake!)).text()).not.toContain('"usage"')
  }))

test('streams tool calls in fragments joined by their index', () =>
  withFakes([{ kind: 'llamacpp' }], async (fake) => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { properties: { a: { type: 'string' } } } } }]
    const text = await (await askChat(fake!, { prompt: 'call f', more: { tools } })).text()
    const deltas = text
      .split('\n\n')
      .filter((event) => event.includes('tool_calls":['))
      .map((event) => JSON.parse(event.slice('data: '.length)).choices[0].delta.tool_calls[0])

    expect(deltas[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'f', arguments: '' } })
    expect(JSON.parse(deltas.map((delta) => delta.function.arguments).join(''))).toEqual({ a: 'sample' })
    expect(text).toContain('"finish_reason":"tool_calls"')
  }))

test('a prompt over the window and pictures without a projector are refused', () =>
  withFakes([{ kind: 'llamacpp', models: [fastModel('m', { contextTokens: 100 })] }], async (fake) => {
    const long = await askChat(fake!, { prompt: 'x'.repeat(1000) })
    expect(long.status).toBe(400)
    expect((await readJson(long)).error).toMatchObject({
      type: 'exceed_context_size_error',
      n_prompt_tokens: 250,
      n_ctx: 100,
    })

    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }
    const picture = await askChat(fake!, { more: { messages: [{ role: 'user', content: [image] }] } })
    expect(picture.status).toBe(500)
  }))

test('the key is asked for, except on public routes', () =>
  withFakes([{ kind: 'llamacpp', apiKey: 'sesame' }], async (fake) => {
    expect((await getJson(`${fake!.url}/health`)).status).toBe(200)
    expect((await getJson(`${fake!.url}/props`)).status).toBe(401)
    expect((await askChat(fake!)).status).toBe(401)
    const allowed = await fetch(`${fake!.url}/props`, { headers: { authorization: 'Bearer sesame' } })
    expect(allowed.status).toBe(200)
  }))

test('router: states, explicit load and unload with their refusals', () =>
  withFakes(
    [
      {
        kind: 'llamacpp-router',
        maxResident: 2,
        models: ['a', 'b', 'c'].map((name) => fastModel(name, { loadMs: 60 })),
      },
    ],
    async (fake) => {
      const states = async () => (await getJson(`${fake!.url}/models`)).json.data.map((each: Json) => each.status.value)
      expect((await getJson(`${fake!.url}/props`)).json).toMatchObject({ role: 'router', max_instances: 2 })
      expect(await states()).toEqual(['unloaded', 'unloaded', 'unloaded'])

      expect((await postJson(`${fake!.url}/models/load`, { model: 'b' })).json).toEqual({ success: true })
      expect(await states()).toEqual(['unloaded', 'loading', 'unloaded'])
      await until(() => fake!.resident().includes('b'))
      expect(await states()).toEqual(['unloaded', 'loaded', 'unloaded'])
      expect((await postJson(`${fake!.url}/models/load`, { model: 'b' })).status).toBe(400)
      expect((await postJson(`${fake!.url}/models/load`, { model: 'x' })).status).toBe(404)
      expect((await postJson(`${fake!.url}/models/unload`, { model: 'b' })).json).toEqual({ success: true })
      expect((await postJson(`${fake!.url}/models/unload`, { model: 'b' })).status).toBe(400)
      expect(await states()).toEqual(['unloaded', 'unloaded', 'unloaded'])
    },
  ))

test('router: even a look at the slots loads, unless autoload is off', () =>
  withFakes([{ kind: 'llamacpp-router' }], async (fake) => {
    expect(await getJson(`${fake!.url}/slots?model=m&autoload=false`)).toMatchObject({
      status: 400,
      json: { error: { message: 'model is not loaded' } },
    })
    expect(fake!.resident()).toEqual([])
    expect((await getJson(`${fake!.url}/slots?model=m`)).status).toBe(200)
    expect(fake!.resident()).toEqual(['m'])
    expect((await askChat(fake!, { model: 'x' })).status).toBe(400)
  }))

test('router: a request loads its model and evicts the one used longest ago', () =>
  withFakes(
    [{ kind: 'llamacpp-router', maxResident: 2, models: ['a', 'b', 'c'].map((name) => fastModel(name)) }],
    async (fake) => {
      for (const model of ['a', 'b', 'c']) expect(chatText(await (await askChat(fake!, { model })).text())).not.toBe('')

      expect(fake!.resident()).toEqual(['b', 'c'])
    },
  ))
