import { expect, test } from 'bun:test'
import { startWatch } from '../support/stopwatch'
import { host, modelView } from './harness'

const names = ['gemma:27b', 'hf.co/org/Repo-GGUF:Q4_K_M', 'org/name@q4', 'a b', '名前:7b', '100%']

const fleet = { models: () => names.map((name) => modelView(name)) }

test('the OpenAI list has every model', async () => {
  const { data } = (await (await host({ fleet }).get('/v1/models')).json()) as { data: { id: string }[] }

  expect(data.map(({ id }) => id).toSorted()).toEqual(names.toSorted())
})

test.each(names)('BL-N02: the model %s is found percent-encoded', async (name) => {
  const response = await host({ fleet }).get(`/v1/models/${encodeURIComponent(name)}`)

  expect(await response.json()).toMatchObject({ id: name, object: 'model' })
})

test.each(['hf.co/org/Repo-GGUF:Q4_K_M', 'org/name@q4', 'gemma:27b'])(
  'BL-N02: the model %s is found with raw slashes and colons',
  async (name) => {
    const response = await host({ fleet }).get(`/v1/models/${name}`)

    expect(await response.json()).toMatchObject({ id: name })
  },
)

test.each(['gemma', 'org', 'nothing%zz'])('BL-N02: %s is unknown', async (name) => {
  const response = await host({ fleet }).get(`/v1/models/${name}`)

  expect(response.status).toBe(404)
})

test('Ollama clients see the models, the version and that it runs', async () => {
  const { get, post } = host({ fleet })

  const tags = (await (await get('/api/tags')).json()) as { models: { name: string }[] }
  expect(tags.models.map(({ name }) => name)).toContain('gemma:27b')
  expect(await (await get('/api/ps')).json()).toEqual({ models: [] })
  expect(await (await get('/api/version')).json()).toEqual({ version: '0.33.0' })
  expect(await (await get('/')).text()).toBe('Ollama is running')
  expect((await post('/api/show', { model: 'gemma:27b' })).status).toBe(200)
  expect((await post('/api/show', { name: 'gemma:27b' })).status).toBe(200)
})

test.each([
  [{ model: 'nobody' }, 404],
  [{}, 400],
  [{ model: 7 }, 400],
  ['nonsense', 400],
  ['null', 400],
])('show of %p is %p', async (body, status) => {
  expect((await host({ fleet }).post('/api/show', body)).status).toBe(status)
})

test('BL-H11: a model whose only node is away is not offered, but still known', async () => {
  const away = modelView('away:7b')
  const models = [modelView('here:7b'), { ...away, nodes: away.nodes.map((node) => ({ ...node, online: false })) }]
  const { get } = host({ fleet: { models: () => models } })

  const lists = [await (await get('/v1/models')).text(), await (await get('/api/tags')).text()]

  for (const list of lists) {
    expect(list).toContain('here:7b')
    expect(list).not.toContain('away:7b')
  }
  expect((await get('/v1/models/away:7b')).status).toBe(200)
})

test('BL-H11: model lists come from what is known, without asking a node', async () => {
  let submitted = 0
  const { get } = host({ fleet: { ...fleet, submit: () => Promise.reject(++submitted) } })

  const taken = startWatch()
  for (let round = 0; round < 20; round++) {
    await get('/v1/models')
    await get('/api/tags')
  }

  expect(taken() / 40).toBeLessThan(20)
  expect(submitted).toBe(0)
})

test.each(['/api/pull', '/api/push', '/api/create', '/api/copy'])(
  '%s without an Ollama node to do it on is refused, with what to name',
  async (path) => {
    const response = await host({ fleet }).post(path, { model: 'x', source: 'x' })

    expect(response.status).toBe(400)
    expect((await response.json()) as object).toMatchObject({ fleet: { code: 'not_supported' } })
  },
)
