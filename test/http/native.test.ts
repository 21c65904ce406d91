import { expect, test } from 'bun:test'
import { host, nodeView, overview, record } from './harness'

const body = async (response: Response | Promise<Response>): Promise<unknown> => (await response).json()

test('the native API shows what the fleet shows', async () => {
  const { get } = host({ fleet: { actors: () => [{ id: 'node/box', machine: 'node', state: 'online' }] } })

  expect(await body(get('/api/v1/overview'))).toMatchObject({ instance: 'inst-1', healthyNodes: 1 })
  expect(await body(get('/api/v1/nodes'))).toMatchObject({ nodes: [{ name: 'box' }] })
  expect(await body(get('/api/v1/models'))).toMatchObject({ models: [{ name: 'qwen:7b' }] })
  expect(await body(get('/api/v1/queues'))).toEqual({ queues: [], waiters: [] })
  expect(await body(get('/api/v1/actors'))).toEqual({ actors: [{ id: 'node/box', machine: 'node', state: 'online' }] })
})

test('one node comes with what was learned there', async () => {
  const { get } = host()

  expect(await body(get('/api/v1/nodes/box'))).toMatchObject({ name: 'box', learned: { samples: 3, latencyMs: 900 } })
  expect(await body(get('/api/v1/nodes'))).not.toMatchObject({ nodes: [{ learned: {} }] })
})

test('one node is found by its name, percent-encoded or not', async () => {
  const { get } = host({ fleet: { nodes: () => [nodeView('box 名/1')] } })

  expect(await body(get(`/api/v1/nodes/${encodeURIComponent('box 名/1')}`))).toMatchObject({ name: 'box 名/1' })
  expect((await get('/api/v1/nodes/other')).status).toBe(404)
})

test('a request is found by our id, by the id of its client, and as the last one', async () => {
  const base = record('req_b')
  const records = [record('req_a'), { ...base, asked: { ...base.asked, clientRequestId: 'mine' } }, record('req_c')]
  const { get } = host({ records })

  expect(await body(get('/api/v1/requests/req_a'))).toMatchObject({ id: 'req_a' })
  expect(await body(get('/api/v1/requests/mine'))).toMatchObject({ id: 'req_b' })
  expect(await body(get('/api/v1/requests/last'))).toMatchObject({ id: 'req_c' })
  expect((await get('/api/v1/requests/req_z')).status).toBe(404)
  expect((await host().get('/api/v1/requests/last')).status).toBe(404)
})

test('requests are filtered and limited', async () => {
  const { get } = host({ records: [record('req_a', 'm'), record('req_b', 'other'), record('req_c', 'm')] })

  expect(await body(get('/api/v1/requests?model=m&limit=1'))).toMatchObject({ requests: [{ id: 'req_a' }] })
  expect(((await body(get('/api/v1/requests'))) as { requests: unknown[] }).requests).toHaveLength(3)
})

test.each(['0', '-1', '1.5', 'all', '1001'])('limit=%s is refused', async (limit) => {
  expect((await host().get(`/api/v1/requests?limit=${limit}`)).status).toBe(400)
})

test.each([
  ['pause', 'paused'],
  ['resume', 'open'],
  ['drain', 'draining'],
])('%s makes a node %s', async (verb, admission) => {
  const { post, admissions } = host()

  expect(await body(post(`/api/v1/nodes/box/${verb}`, ''))).toEqual({ node: 'box', admission })
  expect(admissions).toEqual([['box', admission]])
  expect((await post(`/api/v1/nodes/nobody/${verb}`, '')).status).toBe(404)
})

test('the process is alive whatever the fleet does', async () => {
  const { get } = host({ fleet: { ready: () => false } })

  expect(await body(get('/healthz'))).toEqual({ status: 'alive', instance: 'inst-1', version: '1.2.3' })
})

test.each([
  ['ready', {}, true, 200, undefined],
  ['not asked yet', { ready: () => false }, true, 503, 'no node has answered yet'],
  ['shutting down', { overview: () => ({ ...overview, draining: true }) }, true, 503, 'the router is shutting down'],
  ['without a node', { overview: () => ({ ...overview, healthyNodes: 0 }) }, false, 503, 'no node is online'],
  ['still looking for nodes', { overview: () => ({ ...overview, healthyNodes: 0 }) }, true, 200, undefined],
])('readiness: %s', async (_, fleet, discovery, status, reason) => {
  const response = await host({ fleet, discovery }).get('/readyz')

  expect(response.status).toBe(status)
  expect(((await response.json()) as { reason?: string }).reason).toBe(reason)
})

test('metrics are served as the registry writes them, and 404 when there are none', async () => {
  const metrics = { expose: async () => 'fleet_up 1\n', contentType: 'text/plain; version=0.0.4' }

  const response = await host({ metrics }).get('/metrics')

  expect(await response.text()).toBe('fleet_up 1\n')
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4')
  expect((await host().get('/metrics')).status).toBe(404)
})
