import { describe, expect, test } from 'bun:test'
import { adoptable } from '../../../src/config/adoptable'
import { differences } from '../../../src/config/difference'
import type { ConfigOnDisk } from '../../../src/config/from-disk'
import { loadConfig } from '../../../src/config/load'
import { createReloader } from '../../../src/config/reload'
import { createWatch } from '../../../src/config/watch'
import type { Config } from '../../../src/domain/config'
import type { Fact } from '../../../src/domain/facts'
import { VirtualClock } from '../../../src/sim/virtual-clock'

type Env = Readonly<Record<string, string>>

const onDisk = (text: string, env: Env = {}): ConfigOnDisk => ({
  ...loadConfig({
    file: { path: 'fleet.toml', text },
    env,
    flags: {},
    readSecret: () => {
      throw new Error('no such file')
    },
  }),
  path: 'fleet.toml',
  text,
})

const effective = (text: string, env: Env = {}) => {
  const { config, values, problems } = onDisk(text, env)
  if (config === undefined) throw new Error(JSON.stringify(problems))
  return { config, values }
}

const node = (name: string, more = '', port = 1): string =>
  `[[nodes]]\nname = "${name}"\nkind = "ollama"\nurl = "http://10.0.0.${port}:11434"\n${more}\n`

describe('what differs', () => {
  test('a key by its name in the file, as it is written there, and the default where there was none', () => {
    const before = effective('[limits]\nwaiting_total = 5\n')
    const after = effective('[limits]\nwaiting_total = 5\nfirst_token_timeout = "90s"\nconcurrent = 3\n')

    expect(differences(before, after)).toEqual([
      { key: 'limits.concurrent', from: null, to: 3 },
      { key: 'limits.first_token_timeout', from: '10m', to: '90s' },
    ])
  })

  test('nodes by their names, wherever they stand: one change for one that came or went, keys for one that stayed', () => {
    const before = effective(node('a.b', 'max_concurrency = 1', 1) + node('gone', '', 2))
    const after = effective(node('new', '', 3) + node('a.b', 'max_concurrency = 2', 1))

    expect(differences(before, after)).toEqual([
      { key: 'nodes.a.b.max_concurrency', from: 1, to: 2 },
      { key: 'nodes.gone', from: 'http://10.0.0.2:11434', to: null },
      { key: 'nodes.new', from: null, to: 'http://10.0.0.3:11434' },
    ])
  })

  test('secrets are compared and never shown', () => {
    const text = `${node('dgx', 'key_env = "DGX"')}[[auth.keys]]\nname = "lap"\nkey_env = "LAP"\n`
    const before = effective(text, { DGX: 'outbound-1', LAP: 'caller-key-1' })
    const after = effective(text, { DGX: 'outbound-2', LAP: 'caller-key-2' })

    const changes = differences(before, after)

    expect(changes).toEqual([
      { key: 'nodes.dgx.key', from: 'secret', to: 'changed' },
      { key: 'auth.keys.lap.key', from: 'secret', to: 'changed' },
    ])
    expect(JSON.stringify(changes)).not.toMatch(/outbound-|caller-key-|[0-9a-f]{64}/)
  })
})

describe('what a running router can take', () => {
  const base = effective('').config

  test('listener and store wait for a restart, the rest of their sections does not', () => {
    const next: Config = {
      ...base,
      server: { ...base.server, port: 9, shutdownGraceMs: 7 },
      state: { ...base.state, backend: 'memory', path: '/elsewhere', keepTracesMs: 8 },
    }

    const { config, waiting } = adoptable(base, next)

    expect(waiting).toEqual(['server.listen', 'state.backend', 'state.path'])
    expect(config.server).toEqual({ ...base.server, shutdownGraceMs: 7 })
    expect(config.state).toEqual({ ...base.state, keepTracesMs: 8 })
  })

  test('keys are not dropped while the old, wider listener is open', () => {
    const keys = [{ name: 'k', sha256: 'ab'.repeat(32), scopes: ['inference' as const] }]
    const wide: Config = { ...base, server: { ...base.server, host: '0.0.0.0' }, auth: { mode: 'keys', keys } }
    const narrow: Config = { ...wide, server: { ...base.server, host: '127.0.0.1' }, auth: { mode: 'open', keys: [] } }

    expect(adoptable(wide, narrow)).toMatchObject({
      config: { server: { host: '0.0.0.0' }, auth: { mode: 'keys', keys } },
      waiting: ['server.listen', 'auth'],
    })
    expect(adoptable({ ...base, auth: { mode: 'keys', keys } }, base)).toMatchObject({ config: base, waiting: [] })
  })
})

describe('watching the file', () => {
  const watched = async (change: (set: (stamp: string) => void, clock: VirtualClock) => Promise<void>) => {
    const clock = new VirtualClock()
    let stamp = 'one'
    const changes: number[] = []
    const startedAt = clock.now()
    const watch = createWatch({
      stamp: async () => stamp,
      clock,
      changed: () => changes.push(clock.now() - startedAt),
    })
    watch.start()
    await clock.advance(0)
    await change((next) => {
      stamp = next
    }, clock)
    watch.stop()
    return changes
  }

  test('a change is told once it has rested for 500 ms, however many steps it took', async () => {
    const changes = await watched(async (set, clock) => {
      await clock.advance(1_900)
      for (const step of ['two', 'three', 'four']) {
        set(step)
        await clock.advance(400)
      }
      await clock.advance(10_000)
    })

    expect(changes).toHaveLength(1)
    expect(changes[0]).toBeGreaterThan(2_700 + 500 - 1)
    expect(changes[0]).toBeLessThanOrEqual(3_100 + 1_000)
  })

  test('nothing is told of a file that rests, nor after the end', async () => {
    expect(await watched((_, clock) => clock.advance(60_000))).toEqual([])
    const clock = new VirtualClock()
    let stamp = 1
    const watch = createWatch({ stamp: async () => String(stamp++), clock, changed: () => expect.unreachable() })
    watch.start()
    watch.stop()
    await clock.advance(60_000)
  })
})

describe('reading it again', () => {
  const reloading = (first: string) => {
    let text: string | (() => never) = first
    const facts: Fact[] = []
    const applied: Config[] = []
    const start = onDisk(first)
    const clock = new VirtualClock()
    const reloader = createReloader({
      source: {
        first: start,
        load: () => (typeof text === 'string' ? onDisk(text) : text()),
        stamp: async () => String(text),
      },
      running: () => applied.at(-1) ?? (start.config as Config),
      apply: (config) => applied.push(config),
      journal: { record: (fact) => facts.push(fact) },
      clock,
    })
    return {
      reloader,
      facts,
      applied,
      clock,
      write: (next: string | (() => never)) => {
        text = next
      },
    }
  }

  test('each change is a fact, then the whole is one', () => {
    const { reloader, write, facts, applied } = reloading('[policy]\nretries = 2\n')

    write(`[policy]\nretries = 3\n[server]\nlisten = "127.0.0.1:9"\n${node('a')}`)
    const outcome = reloader.reload('signal')

    expect(outcome).toMatchObject({ outcome: 'applied', waiting: ['server.listen'] })
    expect(applied).toMatchObject([{ policy: { retries: 3 }, nodes: [{ name: 'a' }], server: { port: 11435 } }])
    expect(facts).toMatchObject([
      { type: 'config.changed', key: 'server.listen', to: '127.0.0.1:9', waits: true },
      { type: 'config.changed', key: 'policy.retries', from: 2, to: 3 },
      { type: 'config.changed', key: 'nodes.a', from: null },
      { type: 'config.applied', cause: 'signal', changed: 2, waiting: ['server.listen'] },
    ])
    expect(facts[1]).not.toHaveProperty('waits')
  })

  test('a key that still waits for the restart is told at every later reading', () => {
    const { reloader, write } = reloading('')

    write('[state]\npath = "/elsewhere"\n')
    reloader.reload('file')

    expect(reloader.reload('file')).toMatchObject({ outcome: 'applied', changes: [], waiting: ['state.path'] })
  })

  test.each([
    ['an unknown key', '[policy]\nretires = 3\n', { line: 2, column: 1, message: /retires.*retries/ }],
    ['a half-written line', '[policy]\nretries = ', { line: 2, message: /value is missing/ }],
    ['a file that was emptied', '', { message: /fleet.toml is empty/ }],
    [
      'a reader that breaks',
      () => {
        throw new Error('EIO')
      },
      { message: /EIO/ },
    ],
  ])('%s is refused whole, with its place, and what was there stays', (_, next, problem) => {
    const { reloader, write, facts, applied } = reloading('[policy]\nretries = 2\n')

    write(next)
    const outcome = reloader.reload('file')

    expect(outcome.outcome).toBe('rejected')
    expect(applied).toEqual([])
    const { message, ...place } = problem
    expect(facts).toMatchObject([{ type: 'config.rejected', cause: 'file', problems: [place] }])
    expect(facts[0]).toMatchObject({ problems: [{ message: expect.stringMatching(message) }] })
    write('[policy]\nretries = 4\n')
    expect(reloader.reload('file')).toMatchObject({ changes: [{ key: 'policy.retries', from: 2, to: 4 }] })
  })

  test('a changed file is read by itself', async () => {
    const { reloader, write, applied, clock } = reloading('[policy]\nretries = 2\n')
    reloader.start()
    await clock.advance(3_000)

    write('[policy]\nretries = 5\n')
    await clock.advance(3_000)
    reloader.stop()

    expect(applied).toMatchObject([{ policy: { retries: 5 } }])
  })
})
