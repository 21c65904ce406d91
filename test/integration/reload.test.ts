import { expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Disk, loadFromDisk } from '../../src/config/from-disk'
import { createReloader } from '../../src/config/reload'
import { createFileSource } from '../../src/config/source'
import type { Config } from '../../src/domain/config'
import { systemClock } from '../../src/system'
import { chatText, fastModel, readJson, slowModel, until, withFakes } from '../support/fakes'
import { HEAD, nodeToml, withReloadable } from '../support/reloadable'

const quick = `
[health]
poll_every = "100ms"
[policy]
retries = 0
`

test('removing, adding, renaming a node, changing a limit and breaking the file under load: no request fails', () => {
  const spec = {
    kind: 'llamacpp',
    slots: 4,
    answerTokens: [8, 60],
    models: [fastModel('m', { decodePerSecond: 300 })],
  } as const
  return withFakes([spec, spec, spec], async (a, b, c) => {
    const start = HEAD + quick + nodeToml('a', a) + nodeToml('b', b)
    await withReloadable(start, async ({ reload, write, router, chat, of, facts, url }) => {
      let isLoaded = true
      const answers: string[] = []
      const client = async (): Promise<void> => {
        while (isLoaded) {
          const answer = await chat()
          const body = await answer.text()
          answers.push(answer.status === 200 && body.includes('data: [DONE]') ? 'ok' : `${answer.status} ${body}`)
        }
      }
      const clients = Array.from({ length: 8 }, client)
      const rest = () => Bun.sleep(250)

      await rest()
      expect(reload(start + nodeToml('c', c))).toBe('applied')
      await rest()
      expect(reload(HEAD + quick + nodeToml('b', b) + nodeToml('c', c))).toBe('applied')
      await rest()
      expect(reload(HEAD + quick + nodeToml('beta', b) + nodeToml('c', c))).toBe('applied')
      await rest()
      const limited = `${HEAD}${quick}[limits]\nwaiting_total = 77\n${nodeToml('beta', b, 'max_concurrency = 2')}${nodeToml('c', c)}`
      expect(reload(limited)).toBe('applied')
      await rest()
      expect(reload('[limits]\nwaiting_totl = 1\n')).toBe('rejected')
      write(limited.slice(0, limited.indexOf('waiting_total = ') + 'waiting_total = '.length))
      expect(router.reloader?.reload('file').outcome).toBe('rejected')
      await rest()
      expect(reload(HEAD + quick + nodeToml('beta', a, 'max_concurrency = 2') + nodeToml('c', c))).toBe('applied')
      await rest()
      isLoaded = false
      await Promise.all(clients)

      expect(new Set(answers)).toEqual(new Set(['ok']))
      expect(answers.length).toBeGreaterThan(30)
      expect(of('config.changed').map(({ key, from, to }) => [key, from, to])).toEqual([
        ['nodes.c', null, c.url],
        ['nodes.a', a.url, null],
        ['nodes.b', b.url, null],
        ['nodes.beta', null, b.url],
        ['limits.waiting_total', 10_000, 77],
        ['nodes.beta.max_concurrency', null, 2],
        ['limits.waiting_total', 77, 10_000],
        ['nodes.beta.url', b.url, a.url],
      ])
      expect(of('config.rejected').map(({ problems }) => problems[0])).toMatchObject([
        { file: 'fleet.toml', line: 2, column: 1, message: expect.stringContaining('waiting_total') },
        { file: 'fleet.toml', message: expect.stringContaining('a value is missing') },
      ])
      const membership = facts.filter(({ type }) => /^node\.(added|removed|changed)$/.test(type))
      expect(membership.map((fact) => `${fact.type} ${'node' in fact ? fact.node : ''}`)).toEqual([
        'node.added c',
        'node.removed a',
        'node.added beta',
        'node.removed b',
        'node.changed beta',
        'node.changed beta',
      ])
      await until(() => router.fleet.overview().inFlight === 0)
      router.fleet.shared.desk.ledger.check()
      expect(
        router.fleet
          .nodes()
          .map(({ name }) => name)
          .sort(),
      ).toEqual(['beta', 'c'])
      const metrics = await (await fetch(`${url}/metrics`)).text()
      expect(metrics).toContain('fleet_config_reloads_total{outcome="applied"} 5\n')
      expect(metrics).toContain('fleet_config_reloads_total{outcome="rejected"} 2\n')
      const success = Number(/fleet_config_last_success_timestamp_seconds ([\d.]+)/.exec(metrics)?.[1])
      expect(Math.abs(success - Date.now() / 1000)).toBeLessThan(60)
    })
  })
}, 20_000)

test('BL-G01 reading the file again during 20 streams: valid is taken whole, invalid and half-written are not, no stream is touched', () =>
  withFakes(
    [{ kind: 'llamacpp', slots: 32, answerTokens: 30, models: [slowModel('m', { decodePerSecond: 40 })] }],
    async (a) => {
      const good = HEAD + nodeToml('a', a)
      await withReloadable(good, async ({ reload, chat, router, of }) => {
        const streams = await Promise.all(Array.from({ length: 20 }, () => chat()))
        const bodies = streams.map((stream) => stream.text())

        expect(reload(`${good}[policy]\nretries = 7\n[limits]\nqueue_per_node = 3\n`)).toBe('applied')
        expect(router.config).toMatchObject({ policy: { retries: 7 }, limits: { queuePerNode: 3 } })
        expect(reload(`${good}[policy]\nretries = 9\nrescore_every = "soon"\n`)).toBe('rejected')
        expect(reload(`${good}[policy]\nretries = 9\n[limits]\nqueue_per_node`)).toBe('rejected')

        expect(router.config).toMatchObject({ policy: { retries: 7 }, limits: { queuePerNode: 3 } })
        expect(of('config.rejected')[0]?.problems).toMatchObject([
          { path: 'policy.rescore_every', line: expect.any(Number), column: 17 },
        ])
        const words = (await Promise.all(bodies)).map((body) => [
          chatText(body).split(' ').length,
          body.includes('[DONE]'),
        ])
        expect(words).toEqual(Array.from({ length: 20 }, () => [30, true]))
      })
    },
  ))

test('the file is seen when an editor replaces it, when a link is turned, and when it goes and comes', async () => {
  const text = (retries: number) => `[policy]\nretries = ${retries}\n`
  await withFolder(async (folder) => {
    const file = join(folder, 'fleet.toml')
    writeFileSync(file, text(1))
    const disk: Disk = { env: {}, cwd: folder, read: (path) => readFileSync(path, 'utf8'), exists: existsSync }
    const first = loadFromDisk(disk, file)
    let config = first.config as Config
    const rejected: unknown[] = []
    const reloader = createReloader({
      source: createFileSource({ disk, flags: {}, first }),
      running: () => config,
      apply: (next) => {
        config = next
      },
      journal: { record: (fact) => void (fact.type === 'config.rejected' && rejected.push(fact.problems)) },
      clock: { ...systemClock, setTimeout: (run, ms) => setTimeout(run, ms / 20) },
    })
    const reaches = (retries: number) => until(() => config.policy.retries === retries)
    reloader.start()
    await Bun.sleep(50)

    writeFileSync(`${file}.tmp`, text(3))
    renameSync(`${file}.tmp`, file)
    await reaches(3)
    for (const [name, retries] of [
      ['v1', 4],
      ['v2', 5],
    ] as const) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'fleet.toml'), text(retries))
    }
    symlinkSync('v1', join(folder, 'current'))
    unlinkSync(file)
    symlinkSync('current/fleet.toml', file)
    await reaches(4)
    symlinkSync('v2', join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'current'))
    await reaches(5)
    unlinkSync(file)
    await until(() => rejected.length > 0)
    expect(rejected.at(-1)).toMatchObject([{ message: `cannot read ${file}` }])
    expect(config.policy.retries).toBe(5)
    writeFileSync(file, text(6))
    await reaches(6)
    reloader.stop()
  })
})

const withFolder = async (run: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-watch-'))
  try {
    await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('keys, body limit and metrics of the new configuration hold for the next request', () =>
  withFakes([{ kind: 'llamacpp' }], async (a) => {
    const base = HEAD + nodeToml('a', a)
    const env = { KEY_ONE: 'key-number-one', KEY_TWO: 'key-number-two' }
    const keyed = (variable: string) =>
      `${base.replace('[server]', '[auth]\nmode = "keys"\n[server]')}[[auth.keys]]\nname = "lap"\nkey_env = "${variable}"\nscopes = ["inference", "admin", "metrics"]\n`
    await withReloadable(
      base,
      async ({ reload, chat, url, of }) => {
        const status = async (key?: string) =>
          (await chat('m', key === undefined ? {} : { authorization: `Bearer ${key}` })).status
        expect(await status()).toBe(200)

        expect(reload(keyed('KEY_ONE'))).toBe('applied')
        expect([await status(), await status(env.KEY_ONE), await status(env.KEY_TWO)]).toEqual([401, 200, 401])
        expect(reload(keyed('KEY_TWO'))).toBe('applied')
        expect([await status(env.KEY_ONE), await status(env.KEY_TWO)]).toEqual([401, 200])
        expect(of('config.changed').map(({ key, to }) => [key, to])).toContainEqual(['auth.keys.lap.key', 'changed'])
        expect(JSON.stringify(of('config.changed'))).not.toContain('key-number')

        const big = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(1_100_000) }] }
        const send = () => fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(big) })
        expect(reload(base)).toBe('applied')
        expect((await send()).status).not.toBe(413)
        expect(reload(`${base.replace('[server]', '[server]\nmax_body_mb = 1')}[metrics]\nenabled = false\n`)).toBe(
          'applied',
        )
        expect((await send()).status).toBe(413)
        expect((await fetch(`${url}/metrics`)).status).toBe(404)
      },
      env,
    )
  }))

test('POST /api/v1/config/reload reads the file and says what came of it', () =>
  withFakes([{ kind: 'llamacpp' }], async (a) => {
    const base = HEAD + nodeToml('a', a)
    await withReloadable(base, async ({ write, url }) => {
      const ask = () => fetch(`${url}/api/v1/config/reload`, { method: 'POST' })

      write(`${base}[policy]\nretries = 5\n`.replace('127.0.0.1:0', '127.0.0.1:1'))
      expect(await readJson(ask())).toEqual({
        outcome: 'applied',
        changes: [
          { key: 'server.listen', from: '127.0.0.1:0', to: '127.0.0.1:1' },
          { key: 'policy.retries', from: 2, to: 5 },
        ],
        waiting: ['server.listen'],
      })
      write('[polcy]\n')
      const refused = await ask()
      expect(refused.status).toBe(400)
      expect(await refused.json()).toMatchObject({
        outcome: 'rejected',
        problems: [{ code: 'unknown_key', line: 1, suggestion: 'policy' }],
        fleet: { message: expect.stringContaining('Line 1: unknown key "polcy"') },
      })
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
    })
  }))
