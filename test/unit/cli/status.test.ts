import { expect, test } from 'bun:test'
import { setAdmission } from '../../../src/cli/admission'
import { renderStatus, type StatusDocument, status } from '../../../src/cli/status'
import { args, reply, terminal } from './terminal'

const hour = 3_600_000

const document: StatusDocument = {
  overview: {
    instance: 'inst-1',
    version: '1.3.0',
    startedAt: 1_000,
    draining: false,
    inFlight: 3,
    waiting: 2,
    held: 1,
    nodes: 2,
    healthyNodes: 1,
    models: 14,
    requests: { completed: 120, failed: 2 },
  },
  nodes: [
    {
      name: 'rig-4090',
      kind: 'ollama',
      url: 'http://10.0.0.2:11434',
      origin: 'configured',
      tags: [],
      version: '0.33.0',
      health: 'online',
      admission: 'open',
      breaker: 'closed',
      state: 'online',
      inFlight: 3,
      models: [],
      resident: [
        { name: 'qwen3-coder-30b-a3b-instruct', state: 'ready' },
        { name: 'gemma3:27b', state: 'loading' },
      ],
      queues: [
        {
          node: 'rig-4090',
          model: 'qwen3-coder-30b-a3b-instruct',
          slots: 4,
          slotsBasis: 'configured',
          inFlight: 3,
          waiting: 2,
          lingering: 0,
        },
        {
          node: 'rig-4090',
          model: 'gemma3:27b',
          slots: 1,
          slotsBasis: 'default',
          inFlight: 0,
          waiting: 0,
          lingering: 0,
        },
      ],
    },
    {
      name: 'a-node-with-a-very-long-name-名前',
      kind: 'llamacpp',
      url: 'http://10.0.0.3:8080',
      origin: 'discovered',
      tags: [],
      health: 'online',
      admission: 'open',
      breaker: 'open',
      state: 'circuit_open',
      inFlight: 0,
      models: [],
      resident: [],
      queues: [],
    },
  ],
  queues: [
    {
      node: 'rig-4090',
      model: 'qwen3-coder-30b-a3b-instruct',
      slots: 4,
      slotsBasis: 'configured',
      inFlight: 3,
      waiting: 2,
      lingering: 0,
    },
    { node: 'rig-4090', model: 'gemma3:27b', slots: 1, slotsBasis: 'default', inFlight: 0, waiting: 0, lingering: 0 },
  ],
  waiters: Array.from({ length: 7 }, (_, index) => ({
    request: `req_${index}`,
    model: 'llava:34b',
    kind: 'held' as const,
    waitedMs: 12_000,
    position: index,
    reason: 'no node fits',
  })),
}

const answers = {
  '/api/v1/overview': () => reply(document.overview),
  '/api/v1/nodes': () => reply({ nodes: document.nodes }),
  '/api/v1/queues': () => reply({ queues: document.queues, waiters: document.waiters }),
}

test('the screen tells nodes, busy queues, waiting requests and totals', () => {
  expect(renderStatus(document, 'http://127.0.0.1:11435', 80, 1_000 + 3 * hour + 12 * 60_000)).toBe(
    `fleet 1.3.0  http://127.0.0.1:11435  up 3 h 12 min
nodes 1/2  models 14  in flight 3  waiting 2  held 1

  NODE                KIND      STATE           SLOTS  WAIT  VERSION  RESIDENT
  rig-4090            ollama    * online          3/5     2  0.33.0   qwen3-cod…
  a-node-with-a-ver…  llamacpp  ! circuit_open      0     0  -        -

  BUSY MODEL                    NODE      SLOTS  WAIT  SLOTS FROM
  qwen3-coder-30b-a3b-instruct  rig-4090    3/4     2  configured

  req_0  held 12 s  llava:34b  no node fits
  req_1  held 12 s  llava:34b  no node fits
  req_2  held 12 s  llava:34b  no node fits
  req_3  held 12 s  llava:34b  no node fits
  req_4  held 12 s  llava:34b  no node fits
  and 2 more

  requests  completed 120  failed 2
`,
  )
})

test('a number that was learned comes with what shows it', () => {
  const queue = { ...document.queues[0]!, slots: 2, slotsBasis: 'learned' as const, inFlight: 3 }
  const parallelism = { slots: 2, overlapping: 20, together: 2, stood: 8, mayTry: false, trying: false }
  const shown = (trying: boolean) =>
    renderStatus({ ...document, queues: [{ ...queue, parallelism: { ...parallelism, trying } }] }, 'u', 160, 0)

  expect(shown(false)).toContain('3/2     2  learned: 2 at once, 8 of 20 waited there\n')
  expect(shown(true)).toContain('8 of 20 waited there; one more is being tried\n')
})

test('a node counts the slots of what it has in memory or runs, not those of what it had', () => {
  const [node] = document.nodes
  const nodes = [
    { ...node!, resident: node!.resident.slice(1), queues: node!.queues.map((one) => ({ ...one, inFlight: 0 })) },
  ]

  expect(renderStatus({ ...document, nodes }, 'u', 80, 0)).toContain('3/1')
})

test.each([60, 80, 132])('no line is wider than %p cells', (columns) => {
  for (const line of renderStatus(document, 'http://127.0.0.1:11435', columns, 0).split('\n')) {
    expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  }
})

test('a wide terminal shows every resident model, loading ones as such', () => {
  expect(renderStatus(document, 'u', 132, 0)).toContain('qwen3-coder-30b-a3b-instruct gemma3:27b (loading)')
})

test('a fleet without nodes says what to do', () => {
  const empty = { ...document, nodes: [], queues: [], waiters: [] }

  expect(renderStatus(empty, 'u', 80, 0)).toContain('no nodes: start a local engine')
})

test('status asks the default router and prints to stdout only', async () => {
  const { io, asked, printed, complained } = terminal(answers)

  expect(await status(args(), io)).toBe(0)

  expect(asked[0]?.url).toBe('http://127.0.0.1:11435/api/v1/overview')
  expect(printed()).toContain('rig-4090')
  expect(complained()).toBe('')
})

test('--json is one document with the same facts', async () => {
  const { io, printed } = terminal(answers)

  await status(args([], { json: true }), io)

  expect(JSON.parse(printed())).toEqual(JSON.parse(JSON.stringify(document)))
})

test.each([
  [{ url: 'nas:1/v1/', key: 'k1' }, { FLEET_URL: 'http://other', FLEET_KEY: 'k2' }, 'http://nas:1/readyz', 'Bearer k1'],
  [{}, { FLEET_URL: 'https://h/fleet/', FLEET_KEY: 'k2' }, 'https://h/fleet/readyz', 'Bearer k2'],
])('options win over the environment (%p)', async (options, env, url, authorization) => {
  const { io, asked } = terminal({ '/readyz': () => reply({}) }, env)

  await status(args([], { ...options, quiet: true }), io)

  expect(asked).toEqual([{ url, method: 'GET', authorization }])
})

test('--quiet prints nothing and tells readiness by its exit code', async () => {
  const ready = terminal({ '/readyz': () => reply({ status: 'ready' }) })
  const not = terminal({ '/readyz': () => reply({ reason: 'no node has answered yet' }, 503) })

  expect(await status(args([], { quiet: true }), ready.io)).toBe(0)
  expect(await status(args([], { quiet: true }), not.io)).toBe(1)
  expect(ready.printed() + not.printed()).toBe('')
})

const timeout = Object.assign(new Error('slow'), { name: 'TimeoutError' })

test.each([
  ['nobody listens', () => new TypeError('refused'), 4, 'fleet serve'],
  ['it does not answer in time', () => timeout, 8, '10 s'],
  ['the key is wrong', () => reply({ fleet: { message: 'The key is not known here.' } }, 401), 5, 'not known'],
  ['the key lacks a scope', () => reply({ fleet: { message: 'It lacks admin.' } }, 403), 5, 'lacks admin'],
  ['something else answers there', () => new Response('hello'), 1, 'not a fleet router'],
  ['the router fails', () => reply('nonsense', 500), 1, 'status 500'],
])('when %s, stderr says so and the exit code tells it', async (_, answer, exit, message) => {
  const { io, printed, complained } = terminal({ '/readyz': answer })

  expect(await status(args([], { quiet: true }), io)).toBe(exit as never)

  expect(printed()).toBe('')
  expect(complained()).toContain(message)
})

test.each([
  ['pause', 'fleet resume a/b'],
  ['drain', 'fleet resume a/b'],
  ['resume', 'fleet pause a/b'],
] as const)('%s says what changed and how to undo it', async (verb, undo) => {
  const { io, asked, printed } = terminal({
    [`/api/v1/nodes/a%2Fb/${verb}`]: () => reply({ node: 'a/b', admission: 'x' }),
  })

  expect(await setAdmission(verb, args(['a/b']), io)).toBe(0)

  expect(asked[0]?.method).toBe('POST')
  expect(printed()).toContain(undo)
})

test('a verb on an unknown node exits 6 with the message of the router', async () => {
  const { io, complained } = terminal({})

  expect(await setAdmission('pause', args(['nobody']), io)).toBe(6)
  expect(complained()).toBe('fleet: There is no such thing.\n')
})
