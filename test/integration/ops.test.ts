import { afterAll, describe, expect, test } from 'bun:test'
import { type AdmissionVerb, setAdmission } from '../../src/cli/admission'
import type { Io } from '../../src/cli/io'
import type { TerminalStatus } from '../../src/domain/facts'
import type { FakeNode } from '../../src/sim/fake/options'
import { sumBy } from '../support/exposition'
import { fastModel, readJson, slowModel, until } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'
import { startWatch } from '../support/stopwatch'

const quiet = { log: { level: 'silent' } } as const

/** A client that leaves once it has seen something of the answer, or at once. */
const leaveAfter = async (ask: (signal: AbortSignal) => Promise<Response>, ms: number): Promise<void> => {
  const client = new AbortController()
  const answer = ask(client.signal).then((response) => response.text())
  setTimeout(() => client.abort(), ms)
  await answer.catch(() => {})
}

test('BL-L01 100 requests of every kind are counted as what they were, and retries apart from them', () => {
  const models = ['ok', 'trunc', 'err', 'bad', 'over'].map((name) => fastModel(name))
  const all = [...models, slowModel('drop')]
  const names = all.map(({ name }) => name)
  return withRouter(
    [
      { kind: 'ollama', models: all, resident: names, slots: 200, keepAliveMs: 600_000 },
      { kind: 'ollama', models: [fastModel('over')] },
    ],
    { ...quiet, health: { breakerFailures: 1_000 }, describe: () => ({ maxConcurrency: 200 }) },
    async ({ fakes: [a], chat, ollama, metrics, idle, of }) => {
      a?.faults.add({ type: 'truncate', afterChunks: 3, match: { model: 'trunc:latest' } })
      a?.faults.add({ type: 'status', status: 500, match: { model: 'err:latest' } })
      a?.faults.add({ type: 'status', status: 400, message: 'no such option', match: { model: 'bad:latest' } })
      a?.faults.add({ type: 'status', status: 500, match: { model: 'over:latest' } })
      const whole = async (answer: Promise<Response>): Promise<number> => {
        const response = await answer
        await response.text()
        return response.status
      }
      const times = <T>(count: number, run: (index: number) => T): T[] =>
        Array.from({ length: count }, (_, i) => run(i))

      const statuses = await Promise.all([
        ...times(20, () => whole(chat({ model: 'ok' }))),
        ...times(20, () => whole(ollama({ model: 'ok', stream: false }))),
        ...times(15, (i) => whole((i % 2 ? chat : ollama)({ model: 'trunc' }))),
        ...times(10, (i) => whole((i % 2 ? chat : ollama)({ model: 'err' }))),
        ...times(5, () => whole(chat({ model: 'bad' }))),
        ...times(5, () => whole(chat({ model: 'unheard-of' }))),
        ...times(5, () => whole(chat({ model: 'over' }))),
        ...times(20, (i) => leaveAfter((signal) => (i % 2 ? chat : ollama)({ model: 'drop', signal }), 40 + i * 15)),
      ])
      await idle()

      const page = await metrics()
      const expected: Partial<Record<TerminalStatus, number>> = {
        completed: 45,
        client_disconnected: 20,
        incomplete: 15,
        failed: 10,
        rejected: 10,
      }
      expect(sumBy(page, 'fleet_requests_total', 'outcome')).toEqual(expected)
      expect(sumBy(page, 'fleet_request_latency_seconds_count', 'outcome')).toEqual(expected)
      expect(sumBy(page, 'fleet_retries_total', 'node')).toEqual({ a: 5 })
      expect(of('request.arrived')).toHaveLength(100)
      expect(of('request.settled').reduce((sum, { outcome }) => sum + outcome.retries, 0)).toBe(5)
      expect(statuses.filter((status) => status === 502)).toHaveLength(10)
      expect(statuses.filter((status) => status === 400)).toHaveLength(5)
      expect(statuses.filter((status) => status === 404)).toHaveLength(5)
    },
  )
})

describe('pause, drain and resume of a node take effect at once on what waits', () => {
  const slow = {
    kind: 'llamacpp',
    slots: 1,
    answerTokens: 40,
    models: [slowModel('m', { decodePerSecond: 100 })],
  } as const

  test('waiting requests start on a node as soon as it is resumed, and stay off it while it is paused', () =>
    withRouter([slow, slow], quiet, async ({ url, chat, fakes: [a, b], router, of }) => {
      const verb = (name: string, what: string) => fetch(`${url}/api/v1/nodes/${name}/${what}`, { method: 'POST' })
      expect(await readJson(verb('b', 'pause'))).toEqual({ node: 'b', admission: 'paused' })

      const answers = [chat(), chat()]
      await until(() => router.fleet.waiters().length === 1)
      expect(router.fleet.waiters()).toMatchObject([{ kind: 'waiting', node: 'a', reason: 'busy' }])
      expect(b?.running()).toBe(0)
      const sinceResumed = startWatch()
      expect((await verb('b', 'resume')).status).toBe(200)
      await until(() => b?.running() === 1)

      expect(sinceResumed()).toBeLessThan(200)
      expect(a?.running()).toBe(1)
      for (const answer of answers) expect(await (await answer).text()).toContain('[DONE]')
      expect(of('node.admission').map(({ node, admission }) => [node, admission])).toEqual([
        ['b', 'paused'],
        ['b', 'open'],
      ])
    }))

  test('a drained node finishes what it has; what waited for it is held with that reason and goes on when it is resumed', () =>
    withRouter([slow], quiet, async ({ url, chat, router, json, idle }) => {
      const verb = (what: string) => fetch(`${url}/api/v1/nodes/a/${what}`, { method: 'POST' })
      const [first, second] = [chat(), chat()]
      await until(() => router.fleet.waiters().length === 1)

      await verb('drain')
      await until(() => router.fleet.waiters()[0]?.kind === 'held')
      expect(router.fleet.waiters()).toMatchObject([{ kind: 'held', reason: 'paused' }])
      expect(await (await first)?.text()).toContain('[DONE]')
      expect(await json('/api/v1/nodes/a')).toMatchObject({ state: 'draining', inFlight: 0 })
      expect(router.fleet.waiters()).toHaveLength(1)
      await verb('resume')

      expect(await (await second)?.text()).toContain('[DONE]')
      await idle()
    }))

  test('the commands do the same, and say how to undo it', () =>
    withRouter([slow], quiet, async ({ url, router, chat }) => {
      let printed = ''
      const io: Io = {
        env: {},
        columns: 80,
        isTty: false,
        fetch: (target, init) => fetch(target, init),
        out: (text) => {
          printed += text
        },
        err: (text) => {
          printed += text
        },
      }
      const command = (verb: AdmissionVerb, node = 'a') =>
        setAdmission(verb, { positionals: [node], options: { url } }, io)

      expect(await command('pause')).toBe(0)
      expect(router.fleet.nodes()[0]?.state).toBe('paused')
      const answer = chat()
      await until(() => router.fleet.waiters().length === 1)
      expect(await command('resume')).toBe(0)
      expect(await (await answer).text()).toContain('[DONE]')
      expect(await command('drain')).toBe(0)
      expect(router.fleet.nodes()[0]?.state).toBe('draining')
      expect(await command('drain', 'zz')).not.toBe(0)
      expect(printed).toMatch(/a is paused.*fleet resume a\n.*a takes requests again.*\n.*a is draining.*zz/s)
    }))

  test('a node that nobody has is 404', () =>
    withRouter([slow], quiet, async ({ url }) => {
      expect((await fetch(`${url}/api/v1/nodes/zz/pause`, { method: 'POST' })).status).toBe(404)
    }))
})

describe('BL-L02 every failure is told with class, phase, node, time and bytes, and never with what was asked', () => {
  /** Speaks HTTP where TLS is expected. */
  const plain = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n') },
  })
  afterAll(() => plain.stop(true))
  const PROMPT = 'a-prompt-that-nobody-may-keep'
  const elsewhere =
    (url: () => string) =>
    ({ router, fakes }: Bench): void => {
      fakes[0]?.faults.add({ type: 'refuse' })
      // As if the name or the server had changed since the last poll.
      const { roster } = router.fleet.shared
      const member = roster.get('a')
      if (member === undefined) throw new Error('no node')
      roster.join({ ...member, description: { ...member.description, url: url() } })
    }
  const fault =
    (kind: Parameters<FakeNode['faults']['add']>[0]) =>
    ({ fakes }: Bench): void =>
      void fakes[0]?.faults.add(kind)

  test.each<[string, (bench: Bench) => void, string, RegExp]>([
    ['a reset', fault({ type: 'reset' }), 'reset', /./],
    ['a TLS error', elsewhere(() => `https://127.0.0.1:${plain.port}`), 'tls', /TLS/],
    ['a name that does not resolve', elsewhere(() => 'http://no-such-host.invalid:80'), 'dns', /no-such-host\.invalid/],
    ['nobody there', elsewhere(() => 'http://127.0.0.1:1'), 'connect', /./],
    ['silence', fault({ type: 'freeze' }), 'first_byte_timeout', /first_token_timeout/],
    ['bytes that are not HTTP', fault({ type: 'garbage' }), 'protocol', /./],
    ['a head without end', fault({ type: 'oversized_header', bytes: 300_000 }), 'protocol', /./],
    ['a status', fault({ type: 'status', status: 500, message: 'CUDA error 700' }), 'status', /CUDA error 700/],
    ['a cut after some words', fault({ type: 'cut', afterChunks: 3 }), 'reset', /./],
  ])('%s', (_, arrange, kind, message) =>
    withRouter(
      [{ kind: 'llamacpp', answerTokens: 8 }],
      { ...quiet, policy: { retries: 0, holdTimeoutMs: 100 }, limits: { firstTokenTimeoutMs: 150 } },
      async (bench) => {
        arrange(bench)

        const answer = await bench.chat({ prompt: PROMPT })
        const body = await answer.text()
        await bench.idle()

        const record = bench.router.decisions.last()
        const isMidway = answer.status === 200
        const isUnsent = kind === 'connect' || kind === 'dns'
        expect((record?.failures[0]?.bytes ?? 0) > 0).toBe(isMidway)
        expect(record?.failures).toMatchObject([
          {
            node: 'a',
            model: 'm',
            class: kind,
            message: expect.stringMatching(message),
            elapsedMs: expect.any(Number),
          },
        ])
        expect(record?.outcome).toMatchObject({
          end: isMidway ? 'incomplete' : isUnsent ? 'expired' : 'failed',
          phase: isMidway ? 'generating' : isUnsent ? 'held' : 'prefill',
          message: expect.stringMatching(/\S/),
        })
        expect(JSON.stringify([record, bench.facts])).not.toContain(PROMPT)
        expect(body).not.toContain(PROMPT)
      },
    ),
  )
})
