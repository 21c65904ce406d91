import { expect, test } from 'bun:test'
import { keepAliveMs } from '../../../src/sim/fake/ollama'
import {
  askChat,
  askOllama,
  fastModel,
  getJson,
  type Json,
  ollamaText,
  postJson,
  readJson,
  until,
  withFakes,
} from '../../support/fakes'

test('tells what a fingerprint looks for', () =>
  withFakes([{ kind: 'ollama', version: '0.31.2' }], async (fake) => {
    expect(await (await fetch(fake!.url)).text()).toBe('Ollama is running')
    const head = await fetch(fake!.url, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '17', ''])
    expect((await getJson(`${fake!.url}/api/version`)).json).toEqual({ version: '0.31.2' })
    expect((await fetch(`${fake!.url}/props`)).status).toBe(404)
    expect((await fetch(`${fake!.url}/api/chat`)).status).toBe(405)
  }))

test('lists models on disk, in memory and in detail', () =>
  withFakes(
    [{ kind: 'ollama', models: [fastModel('qwen', { sizeGb: 5, capabilities: ['chat', 'tools', 'vision'] })] }],
    async (fake) => {
      expect((await getJson(`${fake!.url}/api/ps`)).json).toEqual({ models: [] })
      const loaded = await postJson(`${fake!.url}/api/generate`, {
        model: 'qwen',
        stream: false,
        keep_alive: -1,
        options: { num_ctx: 4096 },
      })

      expect(loaded.json).toMatchObject({ done: true, done_reason: 'load', response: '' })
      const { models } = (await getJson(`${fake!.url}/api/ps`)).json
      expect(models).toMatchObject([
        { name: 'qwen:latest', size: 5e9, size_vram: 5e9, context_length: 4096, expires_at: '2318-01-01T00:00:00Z' },
      ])
      expect((await getJson(`${fake!.url}/api/tags`)).json.models[0]).toMatchObject({
        name: 'qwen:latest',
        size: 5e9,
        digest: models[0].digest,
        capabilities: ['completion', 'tools', 'vision'],
      })
      const shown = await postJson(`${fake!.url}/api/show`, { model: 'QWEN:latest' })
      expect(shown.json.model_info).toMatchObject({ 'general.architecture': 'fake', 'fake.context_length': 8192 })
    },
  ))

test('sends no head while the model loads, and shows it as loading in ps', () =>
  withFakes([{ kind: 'ollama', models: [fastModel('m', { loadMs: 150 })] }], async (fake) => {
    let headers = false
    const answer = askOllama(fake!).then((each) => {
      headers = true
      return each.text()
    })
    await until(() => fake!.log.length === 1)
    await Bun.sleep(60)

    expect(headers).toBe(false)
    expect((await getJson(`${fake!.url}/api/ps`)).json.models).toHaveLength(1)
    expect(fake!.resident()).toEqual([])
    const last = JSON.parse((await answer).trim().split('\n').at(-1)!)
    expect(last).toMatchObject({ done: true, done_reason: 'stop', eval_count: 16, load_duration: 150e6 })
  }))

test('a keep_alive beyond what timers take does not end at once', () =>
  withFakes([{ kind: 'ollama' }], async (fake) => {
    await (await askOllama(fake!, { more: { keep_alive: 1e15 } })).text()
    await Bun.sleep(20)

    expect(fake!.resident()).toEqual(['m'])
  }))

test('unloads on keep_alive 0 and when the keep-alive has passed', () =>
  withFakes([{ kind: 'ollama', models: [fastModel('a'), fastModel('b')], keepAliveMs: 80 }], async (fake) => {
    await fake!.load('a')
    const gone = await postJson(`${fake!.url}/api/generate`, { model: 'a', keep_alive: 0, stream: false })
    expect(gone.json.done_reason).toBe('unload')
    expect(fake!.resident()).toEqual([])

    await (await askOllama(fake!, { model: 'b' })).text()
    expect(fake!.resident()).toEqual(['b'])
    await until(() => fake!.resident().length === 0)

    await (await askOllama(fake!, { model: 'a', more: { keep_alive: 0 } })).text()
    expect(fake!.resident()).toEqual([])
  }))

test('another num_ctx reloads the model once it is idle', () =>
  withFakes([{ kind: 'ollama', slots: 2, answerTokens: 200 }], async (fake) => {
    const first = askOllama(fake!, { more: { options: { num_ctx: 4096 } } }).then((each) => each.text())
    await until(() => fake!.running() === 1)
    const second = askOllama(fake!, { more: { options: { num_ctx: 2048 } } }).then((each) => each.text())

    const texts = [ollamaText(await first), ollamaText(await second)]
    expect(texts[0]).toBe(texts[1]!)
    expect(fake!.loads.map((load) => load.contextTokens)).toEqual([4096, 2048])
    expect(fake!.interrupted()).toBe(0)
  }))

test('calls the tools that the prompt names, whole and with arguments that fit', () =>
  withFakes([{ kind: 'ollama' }], async (fake) => {
    const tool = (name: string) => ({
      type: 'function',
      function: {
        name,
        parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
      },
    })
    const answer = await askOllama(fake!, {
      prompt: 'please call weather and call clock',
      more: { tools: ['weather', 'clock', 'other'].map(tool) },
    })
    const lines = (await answer.text())
      .trim()
      .split('\n')
      .map((each) => JSON.parse(each))

    expect(lines[0].message.tool_calls.map((call: Json) => call.function)).toEqual([
      { index: 0, name: 'weather', arguments: { city: 'sample', days: 1 } },
      { index: 1, name: 'clock', arguments: { city: 'sample', days: 1 } },
    ])
    expect(lines.at(-1)).toMatchObject({ done: true, done_reason: 'stop' })
  }))

test('thinks where the model can, refuses where it cannot', () =>
  withFakes(
    [{ kind: 'ollama', models: [fastModel('deep', { capabilities: ['chat', 'thinking'] }), fastModel('flat')] }],
    async (fake) => {
      const deep = await readJson(askOllama(fake!, { model: 'deep', stream: false, more: { think: true } }))
      const quiet = await readJson(askOllama(fake!, { model: 'deep', stream: false, more: { think: false } }))
      const flat = await askOllama(fake!, { model: 'flat', more: { think: true } })
      const compatible = await readJson(askChat(fake!, { model: 'deep', stream: false }))

      expect(deep.message.thinking).toStartWith('think1.')
      expect(deep.message.content).toStartWith('tok1.')
      expect(quiet.message.thinking).toBeUndefined()
      expect([flat.status, await flat.json()]).toEqual([400, { error: '"flat" does not support thinking' }])
      expect(compatible.choices[0].message.reasoning).toStartWith('think1.')
    },
  ))

test('embeds, and refuses to chat with an embedding model', () =>
  withFakes([{ kind: 'ollama', models: [fastModel('e', { capabilities: ['embedding'] })] }], async (fake) => {
    const many = await postJson(`${fake!.url}/api/embed`, { model: 'e', input: ['a', 'b'] })
    const warm = await postJson(`${fake!.url}/api/embed`, { model: 'e', input: [] })

    expect(many.json.embeddings).toHaveLength(2)
    expect(Math.hypot(...many.json.embeddings[0])).toBeCloseTo(1)
    expect(warm.json.embeddings).toEqual([])
    expect((await askOllama(fake!, { model: 'e' })).status).toBe(400)
  }))

test('an unknown model is 404 in the shape of the route', () =>
  withFakes([{ kind: 'ollama' }], async (fake) => {
    const native = await askOllama(fake!, { model: 'nope' })
    const compatible = await askChat(fake!, { model: 'nope' })

    expect([native.status, await native.json()]).toEqual([404, { error: "model 'nope' not found" }])
    expect(compatible.status).toBe(404)
    expect((await readJson(compatible)).error).toMatchObject({
      type: 'not_found_error',
      message: "model 'nope' not found",
    })
  }))

test.each([
  [5, 5000],
  [-1, -1000],
  [0, 0],
  ['5m', 300_000],
  ['1h30m', 5_400_000],
  ['-1s', -1000],
  ['odd', undefined],
  [undefined, undefined],
])('keep_alive %p is %p ms', (value, ms) => expect(keepAliveMs(value)).toBe(ms))
