import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import manifest from '../../package.json'
import { binary, buildTimeoutMs, emptyFolder, type Running, run, serve } from '../support/binary'
import { fastModel, startFakes, until } from '../support/fakes'

beforeAll(() => binary(), buildTimeoutMs)

describe('fleet serve', () => {
  let fleet: Running | undefined

  afterEach(async () => {
    await fleet?.end('SIGKILL')
    fleet = undefined
  })

  test('starts in an empty folder without any configuration and says where it listens', async () => {
    fleet = await serve({ awaits: '/healthz' })

    expect((await fetch(`${fleet.url}/v1/models`)).status).toBe(200)
    expect(fleet.output()).toContain(String(fleet.port))
  }, 30_000)

  test('--demo lists models and answers a client without any engine', async () => {
    fleet = await serve({ args: ['--demo'] })
    const openai = new OpenAI({ baseURL: `${fleet.url}/v1`, apiKey: 'unused', maxRetries: 0 })

    const [model] = await Array.fromAsync(openai.models.list())
    const answer = await openai.chat.completions.create({
      model: model?.id ?? '',
      messages: [{ role: 'user', content: 'Hello?' }],
    })

    expect(answer.choices[0]?.message.content).toContain('simulated')
  }, 60_000)

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s ends an idle router with exit code 0',
    async (signal) => {
      const idle = await serve({ awaits: '/healthz' })

      expect(await idle.end(signal)).toBe(0)
    },
    30_000,
  )

  test('SIGTERM lets a running answer end before the process does, with exit code 0', async () => {
    const busy = await serve({ args: ['--demo'] })
    const openai = new OpenAI({ baseURL: `${busy.url}/v1`, apiKey: 'unused', maxRetries: 0 })
    const [model] = await Array.fromAsync(openai.models.list())
    const stream = await openai.chat.completions.create({
      model: model?.id ?? '',
      messages: [{ role: 'user', content: 'Hello?' }],
      stream: true,
    })
    const reader = stream[Symbol.asyncIterator]()
    await reader.next()

    const ended = busy.end('SIGTERM')
    let finish: string | null | undefined
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      finish = next.value.choices[0]?.finish_reason ?? finish
    }

    expect(finish).toBe('stop')
    expect(await ended).toBe(0)
  }, 60_000)

  test('records arrive in the database file beside the requests, by a thread that the executable carries', async () => {
    const [engine] = await startFakes([{ kind: 'llamacpp', slots: 20, models: [fastModel()], answerTokens: 1 }])
    const folder = emptied()
    const node = `[[nodes]]\nname = "a"\nkind = "llamacpp"\nurl = "${engine?.url}"\n`
    fleet = await serve({ config: node, env: { FLEET_STATE_PATH: folder } })
    const { url } = fleet
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    const ask = async () => (await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })).arrayBuffer()
    expect(statSync(join(folder, 'fleet.db')).size).toBeLessThan(100_000)

    for (let sent = 0; sent < 1_200; sent += 20) await Promise.all(Array.from({ length: 20 }, ask))
    await until(() => statSync(join(folder, 'fleet.db')).size > 500_000, 10_000)

    await engine?.stop()
  }, 60_000)

  test('a listener beyond this machine without keys does not start: exit 3, and it says what to set', async () => {
    const { code, stderr } = await run(['serve', '--listen', '0.0.0.0:0'], { cwd: emptied() })

    expect(code).toBe(3)
    expect(stderr).toContain('fleet keys add')
  }, 30_000)
})

describe('other commands', () => {
  test('version says the version of the package', async () => {
    const { code, stdout } = await run(['version'])

    expect(code).toBe(0)
    expect(stdout).toContain(manifest.version)
  })

  test('check: 0 for a good file, 3 with the line for a bad one', async () => {
    const folder = emptied()
    writeFileSync(join(folder, 'good.toml'), '[policy]\nretries = 1\n')
    writeFileSync(join(folder, 'bad.toml'), '[policy]\nretires = 1\n')

    const good = await run(['check', join(folder, 'good.toml')])
    const bad = await run(['check', join(folder, 'bad.toml')])

    expect(good).toMatchObject({ code: 0, stdout: expect.stringContaining('policy.retries') })
    expect(bad.code).toBe(3)
    expect(bad.stderr).toContain('bad.toml:2')
    expect(bad.stderr).toContain('retries')
  })

  test('an unknown command is wrong usage and names the nearest one', async () => {
    const { code, stderr } = await run(['explan', 'last'])

    expect(code).toBe(2)
    expect(stderr).toContain("'explain'")
  })

  test('explain without a router: exit 4', async () => {
    const { code } = await run(['explain', 'last', '--url', 'http://127.0.0.1:1'])

    expect(code).toBe(4)
  })
})

const folders: ReturnType<typeof emptyFolder>[] = []

const emptied = (): string => {
  const folder = emptyFolder()
  folders.push(folder)
  return folder.path
}

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove()
})
