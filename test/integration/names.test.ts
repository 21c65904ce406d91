import { describe, expect, test } from 'bun:test'
import type { Config } from '../../src/domain/config'
import { sumBy } from '../support/exposition'
import { chatText, fastModel, getJson, type Json, ollamaText, postJson, readJson } from '../support/fakes'
import { type Bench, type Setup, withRouter } from '../support/router'

const alias = (name: string, ...models: string[]) => ({ name, models, acrossKinds: true })

const named = (aliases: Config['aliases'], more: Setup = {}): Setup => ({ aliases: aliases as never, ...more })

/** The models that the fake was asked for by clients, as it read them. */
const askedOf = ({ fakes }: Bench, at = 0): readonly unknown[] =>
  (fakes[at]?.log ?? [])
    .filter(({ method, path }) => method === 'POST' && !path.startsWith('/api/show'))
    .map(({ body }) => (body as { model?: unknown }).model)

const eventsOf = (text: string): readonly Json[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)))

const linesOf = (text: string): readonly Json[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

describe('one model under several spellings', () => {
  const spellings = ['qwen', 'qwen:latest', 'QWEN:latest', 'Qwen']

  test('BL-N01 has one queue and one series; every answer names it as its client did', () =>
    withRouter(
      [{ kind: 'ollama', models: [fastModel('qwen')] }],
      {},
      async ({ chat, ollama, metrics, idle, router }) => {
        const answered: string[] = []
        for (const model of spellings) {
          answered.push((await readJson(chat({ model, stream: false }))).model)
          answered.push((await readJson(ollama({ model, stream: false }))).model)
          const events = eventsOf(await (await chat({ model })).text())
          answered.push(...new Set(events.map((event) => event.model as string)))
        }
        await idle()

        expect(answered).toEqual(spellings.flatMap((model) => [model, model, model]))
        expect([...router.fleet.shared.queues.keys()]).toEqual(['queue/a/qwen'])
        expect(router.fleet.queues().map(({ model }) => model)).toEqual(['qwen:latest'])
        expect(sumBy(await metrics(), 'fleet_requests_total', 'model')).toEqual({ 'qwen:latest': 12 })
      },
    ))
})

describe('ids with any characters', () => {
  const ids = ['gemma:27b', 'hf.co/org/Repo-GGUF:Q4_K_M', 'org/name@q4', 'a b', '名前:7b']

  for (const kind of ['openai', 'ollama'] as const) {
    test(`BL-N02 ${kind}: come back whole in bodies, paths, headers, records and metrics`, () =>
      withRouter(
        [{ kind, models: ids.map((id) => fastModel(id)) }],
        {},
        async ({ chat, ollama, url, metrics, idle, json }) => {
          for (const model of ids) {
            const answer = await chat({ model, stream: false })
            expect(decodeURIComponent(answer.headers.get('x-fleet-model') ?? '').replace(':latest', '')).toBe(model)
            expect((await readJson(answer)).model).toBe(model)
            expect(linesOf(await (await ollama({ model })).text()).at(-1)).toMatchObject({ model, done: true })

            const raw = model.includes('/') ? [model] : []
            for (const path of [encodeURIComponent(model), ...raw])
              expect((await getJson(`${url}/v1/models/${path}`)).json.id.replace(':latest', '')).toBe(model)
            expect((await postJson(`${url}/api/show`, { model })).status).toBe(200)
            const found: Json = await json(`/api/v1/requests?model=${encodeURIComponent(model)}`)
            expect(found.requests.map(({ asked }: Json) => asked.model)).toEqual([model, model])
          }
          await idle()

          const counted = sumBy(await metrics(), 'fleet_requests_total', 'model')
          expect(Object.keys(counted).map((id) => id.replace(':latest', ''))).toEqual(ids)
          expect(Object.values(counted)).toEqual(ids.map(() => 2))
          for (const unknown of ['gemma', 'hf.co/org', 'org/name', 'a', '7b'])
            expect((await getJson(`${url}/v1/models/${encodeURIComponent(unknown)}`)).status).toBe(404)
        },
      ))
  }
})

describe('an alias', () => {
  const kinds = [
    ['openai', 'm'],
    ['vllm', 'm'],
    ['llamacpp', 'm'],
    ['ollama', 'm:latest'],
  ] as const

  for (const [kind, own] of kinds) {
    test(`BL-N03 ${kind}: never reaches the node, and the client sees nothing else`, () =>
      withRouter([{ kind }], named([alias('smart', 'm'), alias('gpt-*', 'smart')]), async (bench) => {
        const { chat, ollama, url } = bench
        for (const model of ['smart', 'gpt-4o']) {
          expect((await readJson(chat({ model, stream: false }))).model).toBe(model)
          const streamed = await (await chat({ model })).text()
          expect(new Set(eventsOf(streamed).map((event) => event.model))).toEqual(new Set([model]))
          expect(chatText(streamed)).not.toBe('')
          expect((await readJson(ollama({ model, stream: false }))).model).toBe(model)
          const lines = await (await ollama({ model })).text()
          expect(new Set(linesOf(lines).map((line) => line.model))).toEqual(new Set([model]))
          expect(ollamaText(lines)).not.toBe('')
          expect((await postJson(`${url}/api/generate`, { model, prompt: 'hi', stream: false })).json.model).toBe(model)
          const messages = [{ role: 'user', content: 'hi' }]
          const message = await postJson(`${url}/v1/messages`, { model, max_tokens: 9, messages })
          expect(message.json.model).toBe(model)
          expect((await postJson(`${url}/v1/responses`, { model, input: 'hi' })).json.model).toBe(model)
        }

        const asked = askedOf(bench)
        expect(asked.length).toBeGreaterThanOrEqual(14)
        expect(new Set(asked)).toEqual(new Set([own]))
      }))
  }

  test('a node hears its own name also where others have another one for the same model', () =>
    withRouter(
      [
        { kind: 'openai', models: [fastModel('Org/M-GGUF')], slots: 1 },
        { kind: 'ollama', models: [fastModel('m:8b')], resident: ['m:8b'] },
      ],
      named([alias('smart', 'm8')], {
        sameModel: [{ id: 'm8', names: ['org/m-gguf', 'm:8b'] }] as never,
        describe: () => ({ maxConcurrency: 1 }),
      }),
      async (bench) => {
        const { chat, url, metrics, idle, router, of } = bench
        const models = ['smart', 'm8', 'Org/M-GGUF', 'm:8b']
        const answers = await Promise.all([...models, ...models].map((model) => chat({ model, stream: false })))

        expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
        expect(await Promise.all(answers.map(async (answer) => (await readJson(answer)).model))).toEqual([
          ...models,
          ...models,
        ])
        await idle()
        expect(new Set(askedOf(bench, 0))).toEqual(new Set(['Org/M-GGUF']))
        expect(new Set(askedOf(bench, 1))).toEqual(new Set(['m:8b']))
        expect(sumBy(await metrics(), 'fleet_requests_total', 'model')).toEqual({ m8: 8 })
        expect([...router.fleet.shared.queues.keys()].toSorted()).toEqual(['queue/a/m8', 'queue/b/m8'])
        expect(of('request.settled').map(({ outcome }) => outcome.model)).toEqual(Array(8).fill('m8'))

        expect((await getJson(`${url}/v1/models`)).json.data.map(({ id }: Json) => id)).toEqual(['m8', 'smart'])
        const [view] = router.fleet.models()
        expect(view?.nodes.map(({ node, name, sameBy }) => [node, name, sameBy])).toEqual([
          ['a', 'Org/M-GGUF', 'same_model'],
          ['b', 'm:8b', 'same_model'],
        ])
      },
    ))
})

describe('BL-N07 lists', () => {
  const setup = named([alias('smart', 'm'), alias('fast', 'away', 'n'), alias('lost', 'away'), alias('claude-*', 'm')])
  const world = [{ kind: 'ollama', models: [fastModel('m'), fastModel('n')], resident: ['m'] }] as const

  test('have the aliases that are no patterns, no name twice, always in the same order', () =>
    withRouter([...world, ...world], setup, async ({ url }) => {
      const ids = async (): Promise<string[]> => (await getJson(`${url}/v1/models`)).json.data.map(({ id }: Json) => id)
      const names = async (path: string): Promise<string[]> =>
        (await getJson(`${url}${path}`)).json.models.map(({ name }: Json) => name)

      expect(await ids()).toEqual(['fast', 'm:latest', 'n:latest', 'smart'])
      expect(await ids()).toEqual(await ids())
      expect(await names('/api/tags')).toEqual(['fast', 'm:latest', 'n:latest', 'smart'])
      expect((await names('/api/ps')).toSorted()).toEqual(['m:latest', 'smart'])
    }))

  test('an alias is found like a model, and so is what a pattern covers', () =>
    withRouter(world, setup, async ({ url }) => {
      const show = async (model: string): Promise<Json> => (await postJson(`${url}/api/show`, { model })).json

      for (const id of ['smart', 'SMART:latest', 'fast', 'claude-sonnet-4'])
        expect((await getJson(`${url}/v1/models/${id}`)).json).toMatchObject({ object: 'model', owned_by: 'fleet' })
      expect((await getJson(`${url}/v1/models/claude-sonnet-4`)).json.id).toBe('claude-sonnet-4')
      expect((await show('smart')).model_info).toEqual({ ...(await show('m')).model_info, 'general.basename': 'smart' })
      expect((await show('fast')).capabilities).toEqual((await show('n')).capabilities)
      for (const id of ['claude', 'gpt', 'lost']) {
        expect((await getJson(`${url}/v1/models/${id}`)).status).toBe(id === 'lost' ? 200 : 404)
        expect((await postJson(`${url}/api/show`, { model: id })).status).toBe(id === 'lost' ? 200 : 404)
      }
    }))

  test('an alias of the name of a model stands in its place', () =>
    withRouter(world, named([alias('M', 'n')]), async (bench) => {
      const { url, chat } = bench

      expect((await getJson(`${url}/v1/models`)).json.data.map(({ id }: Json) => id)).toEqual(['M', 'n:latest'])
      expect((await readJson(chat({ model: 'm', stream: false }))).model).toBe('m')
      expect(askedOf(bench).at(-1)).toBe('n:latest')
    }))
})

test('a name that is only nearly an alias is answered with the alias that was meant', () =>
  withRouter([{ kind: 'ollama', models: [fastModel('qwen')] }], named([alias('smart', 'qwen')]), async ({ chat }) => {
    const answer = await chat({ model: 'smrt' })

    expect(answer.status).toBe(404)
    expect((await readJson(answer)).fleet.hint).toBe("Did you mean 'smart'?")
  }))
