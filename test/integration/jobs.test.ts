import { describe, expect, test } from 'bun:test'
import { hashKey } from '../../src/config/hash-key'
import { fastModel, readJson, slowModel } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'

const submit = ({ url }: Bench, body: object, headers: Record<string, string> = {}) =>
  fetch(`${url}/api/v1/jobs`, { method: 'POST', headers, body: JSON.stringify(body) })

const messages = [{ role: 'user', content: 'hi' }]

const eventsOf = (text: string) =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('event: '))
    .map((event) => {
      const [name = '', data = ''] = event.split('\n')
      return { event: name.slice('event: '.length), data: JSON.parse(data.slice('data: '.length)) }
    })

describe('POST /api/v1/jobs', () => {
  test.each(['openai', 'ollama'] as const)('answers with the text, the usage and the record, on %s', async (kind) => {
    await withRouter([{ kind, answerTokens: 5, resident: ['m'] }], {}, async (bench) => {
      const answer = await submit(bench, { model: 'm', messages, priority: 'batch', tags: ['nightly'], session: 's1' })
      const json = await readJson(answer)

      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-fleet-node')).toBe('a')
      expect(json).toMatchObject({
        id: answer.headers.get('x-request-id'),
        model: 'm',
        text: expect.stringMatching(/\S/),
        finish: 'stop',
        usage: { tokensOut: 5 },
        record: {
          id: json.id,
          asked: { dialect: 'native', operation: 'native.job', priority: 'batch', tags: ['nightly'], session: 's1' },
          outcome: { end: 'completed', status: 200, node: 'a', tokensOut: 5 },
        },
      })
      await bench.idle()
    })
  })

  test('streams named events, the record last', async () => {
    await withRouter([{ kind: 'openai', answerTokens: 5 }], {}, async (bench) => {
      const answer = await submit(bench, { model: 'm', messages, stream: true })
      const events = eventsOf(await answer.text())

      expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
      expect(new Set(events.slice(0, -2).map(({ event }) => event))).toEqual(new Set(['text']))
      expect(events.at(-2)).toMatchObject({
        event: 'finish',
        data: { model: 'm', reason: 'stop', usage: { tokensOut: 5 } },
      })
      expect(events.at(-1)).toMatchObject({
        event: 'record',
        data: { record: { outcome: { end: 'completed' }, rounds: [{ decision: { node: 'a' } }] } },
      })
      await bench.idle()
    })
  })

  test('a stream that breaks has its error and then its record', async () => {
    await withRouter([{ kind: 'openai' }], {}, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'cut', afterChunks: 4 })

      const events = eventsOf(await (await submit(bench, { model: 'm', messages, stream: true })).text())

      expect(events.slice(-2)).toMatchObject([
        { event: 'error', data: { error: { code: 'upstream_failed' }, fleet: { code: 'upstream_failed' } } },
        { event: 'record', data: { record: { outcome: { end: 'incomplete' } } } },
      ])
      await bench.idle()
    })
  })

  test('a refusal holds the record too, one that never became a job does not', async () => {
    await withRouter([{ kind: 'openai' }], {}, async (bench) => {
      const unknown = await submit(bench, { model: 'nothing', messages })
      const invalid = await submit(bench, { model: 'm', messages, priority: 'urgent' })

      expect(unknown.status).toBe(404)
      expect(await readJson(unknown)).toMatchObject({
        error: { code: 'model_not_found' },
        record: { outcome: { end: 'rejected', status: 404 } },
      })
      expect(invalid.status).toBe(400)
      const json = await readJson(invalid)
      expect(json).toMatchObject({ error: { code: 'invalid_request', param: 'priority' } })
      expect(json).not.toHaveProperty('record')
    })
  })

  test.each([
    [{ messages }, 'model'],
    [{ model: 'm' }, 'messages'],
    [{ model: 'm', messages: [] }, 'messages'],
    [{ model: 'm', messages, policy: 'best' }, 'policy'],
    [{ model: 'm', messages, needs: ['wings'] }, 'needs'],
    [{ model: 'm', messages, tags: 'a' }, 'tags'],
    [{ model: 'm', messages, deadlineAt: 'soon' }, 'deadlineAt'],
  ])('%j is refused with the member that is wrong', async (body, param) => {
    await withRouter([{ kind: 'openai' }], {}, async (bench) => {
      const answer = await submit(bench, body)

      expect(answer.status).toBe(400)
      expect(await readJson(answer)).toMatchObject({ error: { param } })
    })
  })

  test('takes the members of a job: a chain of models, a pin, a policy, a limit of tokens', async () => {
    const model = (name: string) => ({ kind: 'openai' as const, models: [fastModel(name)], answerTokens: 9 })
    await withRouter([model('small'), model('small')], {}, async (bench) => {
      const answer = await submit(bench, {
        models: ['large', 'small'],
        messages,
        pin: 'b',
        policy: 'steady',
        maxOutputTokens: 3,
        clientRequestId: 'mine',
      })

      const { record, model: asked } = await readJson(answer)
      expect(asked).toBe('large')
      expect(record).toMatchObject({
        asked: { clientRequestId: 'mine' },
        rounds: [{ policy: 'steady' }],
        outcome: { end: 'completed', node: 'b', model: 'small' },
      })
      expect(bench.fakes[1]?.log.at(-1)?.body).toMatchObject({ model: 'small', max_tokens: 3 })
    })
  })

  test('a key caps what a body asks for', async () => {
    const keys = [{ name: 'k', sha256: hashKey('fleet_k'), scopes: ['inference' as const], priority: 'batch' as const }]
    await withRouter([{ kind: 'openai' }], { auth: { mode: 'keys', keys } }, async (bench) => {
      const answer = await submit(bench, { model: 'm', messages, priority: 'critical' }, { 'x-api-key': 'fleet_k' })

      expect((await readJson(answer)).record.asked).toMatchObject({ priority: 'batch', key: 'k' })
    })
  })
})

describe('GET /api/v1/jobs/ID', () => {
  test('tells how a job stands, while it runs and afterwards', async () => {
    await withRouter([{ kind: 'openai', models: [slowModel()] }], {}, async (bench) => {
      const answer = await submit(bench, { model: 'm', messages, stream: true })
      const id = answer.headers.get('x-request-id')

      expect(await bench.json(`/api/v1/jobs/${id}`)).toMatchObject({ id, state: 'running', record: { id } })
      await answer.text()
      expect(await bench.json(`/api/v1/jobs/${id}`)).toMatchObject({ id, state: 'completed' })
      expect((await fetch(`${bench.url}/api/v1/jobs/req_none`)).status).toBe(404)
    })
  })

  test('shows a caller its own jobs, and an admin all', async () => {
    const key = (name: string, scope: 'inference' | 'admin') => ({ name, sha256: hashKey(name), scopes: [scope] })
    const keys = [key('mine', 'inference'), key('other', 'inference'), key('root', 'admin')]
    await withRouter([{ kind: 'openai' }], { auth: { mode: 'keys', keys } }, async (bench) => {
      const { id } = await readJson(submit(bench, { model: 'm', messages }, { 'x-api-key': 'mine' }))
      const see = async (name: string) =>
        (await fetch(`${bench.url}/api/v1/jobs/${id}`, { headers: { 'x-api-key': name } })).status

      expect(await Promise.all(['mine', 'other', 'root', 'nobody'].map(see))).toEqual([200, 404, 200, 401])
    })
  })
})
