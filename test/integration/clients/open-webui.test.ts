import { describe, expect, test } from 'bun:test'
import type { Bench } from '../../support/router'
import { asked, type Json, kinds, quietly } from '../clients'
import { able, clientAt, embedding, eventsOf } from './wire'

const headers = {
  authorization: 'Bearer unused',
  'user-agent': 'Python/3.11 aiohttp/3.12',
  'x-openwebui-user-name': 'A%20B',
  'x-openwebui-user-id': 'u1',
  'x-openwebui-user-email': 'a@b.example',
  'x-openwebui-user-role': 'user',
  'x-openwebui-chat-id': 'c1',
}
const client = ({ url }: Bench) => clientAt(url, headers)
const said = (content: string) => [{ role: 'user', content }]
const linesOf = (body: string): Json[] =>
  body
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** What Python's `datetime.fromisoformat` and pydantic take: at most six digits of a second, and where it is. */
const isoDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$/

describe('connected as an Ollama', () => {
  test.each(kinds)('it checks the address, then lists what there is and what is loaded: %s', (kind) =>
    quietly([able(kind)], {}, async (bench) => {
      const { get, head } = client(bench)

      expect((await head('/')).status).toBe(200)
      const version = (await (await get('/api/version')).json()) as Json
      const tags = (await (await get('/api/tags')).json()) as Json
      const ps = (await (await get('/api/ps')).json()) as Json

      expect(version.version).toMatch(/^\d+\.\d+\.\d+$/)
      const [listed] = tags.models
      expect(listed.model).toBe(listed.name)
      expect(listed.modified_at).toMatch(isoDate)
      expect(listed).toMatchObject({ size: expect.any(Number), digest: expect.stringMatching(/^[0-9a-f]{12}/) })
      expect(Object.values(listed.details)).not.toContain(null)
      const [loaded] = ps.models
      expect(loaded).toMatchObject({ name: listed.name, model: listed.name, size_vram: expect.any(Number) })
      expect(loaded.expires_at).toMatch(isoDate)
    }),
  )

  test.each(kinds)('a turn streams in lines; its title is made at the same time, whole: %s', (kind) =>
    quietly([able(kind)], {}, async (bench) => {
      const { post } = client(bench)
      const options = { temperature: 0.7, num_ctx: 8_192 }
      const turn = { model: 'm', messages: said('Tell me.'), options, keep_alive: '5m', stream: true }
      const title = {
        model: 'm',
        messages: said('Name this.'),
        options: { num_predict: 50 },
        stream: false,
        think: false,
      }

      const [answered, named] = await Promise.all([post('/api/chat', turn), post('/api/chat', title)])
      const lines = linesOf(await answered.text())
      const whole = (await named.json()) as Json

      expect(answered.headers.get('content-type')).toStartWith('application/x-ndjson')
      expect(lines.every(({ model, created_at }) => model === 'm' && isoDate.test(created_at))).toBe(true)
      // It shows tokens a second from these.
      expect(lines.at(-1)).toMatchObject({
        done: true,
        done_reason: 'stop',
        total_duration: expect.any(Number),
        prompt_eval_count: expect.any(Number),
        prompt_eval_duration: expect.any(Number),
        eval_count: expect.any(Number),
        eval_duration: expect.any(Number),
      })
      expect(named.headers.get('content-type')).toStartWith('application/json')
      expect(whole).toMatchObject({ done: true, message: { role: 'assistant', content: expect.stringMatching(/./) } })
    }),
  )

  test('documents are embedded in batches', () =>
    quietly([embedding()], {}, async (bench) => {
      const answer = await client(bench).post('/api/embed', { model: 'e', input: ['one', 'two'], truncate: true })

      expect(((await answer.json()) as Json).embeddings).toHaveLength(2)
    }))

  test('an error is one that it can show', () =>
    quietly([able('ollama')], {}, async (bench) => {
      const answer = await client(bench).post('/api/chat', { model: 'nobody', messages: said('hi') })

      expect(answer.status).toBe(404)
      expect(((await answer.json()) as Json).error).toBeString()
    }))
})

describe('connected as an OpenAI server', () => {
  test.each(kinds)('it lists the models, none without a name: %s', (kind) =>
    quietly([able(kind)], {}, async (bench) => {
      const answer = await client(bench).get('/v1/models')
      const { data } = (await answer.json()) as Json

      expect(answer.headers.get('content-type')).toStartWith('application/json')
      expect(data).toMatchObject([{ object: 'model', owned_by: expect.any(String), created: expect.any(Number) }])
      expect(data.every((model: Json) => typeof model.id === 'string' && model.name !== null)).toBe(true)
    }),
  )

  test.each(kinds)('a turn streams with its usage; title, tags and follow-ups come whole beside it: %s', (kind) =>
    quietly([able(kind)], {}, async (bench) => {
      const { post } = client(bench)
      const turn = { model: 'm', messages: said('Tell me.'), stream: true, stream_options: { include_usage: true } }
      const task = (name: string) =>
        post('/v1/chat/completions', { model: 'm', messages: said(name), stream: false, max_completion_tokens: 100 })

      const [answered, ...tasks] = await Promise.all([
        post('/v1/chat/completions', turn),
        task('A title.'),
        task('Tags.'),
        task('Follow-ups.'),
      ])
      const events = eventsOf(await answered.text()).map(({ data }) => data)

      expect(answered.headers.get('content-type')).toStartWith('text/event-stream')
      expect(events.at(-1)).toBe('[DONE]')
      expect(events.at(-2)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
      expect(events[0].choices[0].delta.role).toBe('assistant')
      for (const each of tasks)
        expect((await each.json()) as Json).toMatchObject({
          object: 'chat.completion',
          choices: [{ message: { content: expect.stringMatching(/./) }, finish_reason: 'stop' }],
        })
      // Names and addresses of its users are nobody's business.
      expect(JSON.stringify(asked(bench.fakes[0] as never).map((each) => each.headers))).not.toContain('a@b.example')
    }),
  )

  test('a connection that the page itself makes is let through from this machine, and from nowhere else', () =>
    quietly([able('llamacpp')], {}, async (bench) => {
      const { options, get } = clientAt(bench.url, {})
      const wants = {
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      }
      const here = { origin: 'http://localhost:8080' }

      const preflight = await options('/v1/chat/completions', { ...here, ...wants })
      const list = await get('/v1/models', here)
      const foreign = await options('/v1/chat/completions', { origin: 'https://pages.example', ...wants })

      expect(preflight.status).toBe(204)
      expect(preflight.headers.get('access-control-allow-origin')).toBe(here.origin)
      expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization, content-type')
      expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
      expect(list.headers.get('access-control-allow-origin')).toBe(here.origin)
      expect(foreign.headers.get('access-control-allow-origin')).toBeNull()
    }))
})
