import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binary, buildTimeoutMs, emptyFolder, type Running, serve, until } from '../support/binary'
import { chatText, slowModel, startFakes } from '../support/fakes'

beforeAll(() => binary(), buildTimeoutMs)

describe('changing fleet.toml while the executable runs', () => {
  const folder = emptyFolder()
  const file = join(folder.path, 'fleet.toml')
  const ends: (() => Promise<unknown>)[] = []

  afterEach(async () => {
    for (const end of ends.splice(0)) await end()
    folder.remove()
  })

  test('BL-G01 SIGHUP with a valid, an invalid and a half-written file during 20 streams, then a file that is replaced', async () => {
    const [node] = await startFakes([
      { kind: 'llamacpp', slots: 32, answerTokens: 80, models: [slowModel('m', { decodePerSecond: 20 })] },
    ])
    if (node === undefined) throw new Error('no node')
    ends.push(() => node.stop())
    const text = (more: string) =>
      `[discovery]\nlocal = false\n[log]\nformat = "json"\n[[nodes]]\nname = "a"\nkind = "llamacpp"\nurl = "${node.url}"\n${more}`
    writeFileSync(file, text(''))
    const fleet: Running = await serve({ cwd: folder.path, args: ['--config', file] })
    ends.push(() => fleet.end('SIGKILL'))
    const lines = (message: string) =>
      fleet
        .output()
        .split('\n')
        .filter((line) => line.includes(`"msg":"${message}"`))
    const logged = (message: string, count: number) =>
      until(
        async () => lines(message),
        (found) => found.length >= count,
        8_000,
      )
    const hangUp = (written: string): void => {
      writeFileSync(file, written)
      process.kill(fleet.pid, 'SIGHUP')
    }
    const streams = await Promise.all(Array.from({ length: 20 }, () => chat(fleet.url)))
    const bodies = streams.map((stream) => stream.text())

    hangUp(text('max_concurrency = 30\n'))
    await logged('config.changed', 1)
    hangUp(text('max_concurency = 31\n'))
    await logged('config.rejected', 1)
    hangUp(text('max_concurrency = '))
    await logged('config.rejected', 2)
    expect(lines('config.changed')[0]).toContain('"key":"nodes.a.max_concurrency","from":null,"to":30')
    const [wrong, half] = lines('config.rejected')
    expect(wrong).toContain(`${file}:9:1: unknown key \\"max_concurency\\", did you mean \\"max_concurrency\\"?`)
    expect(half).toContain(`${file}:9:`)

    writeFileSync(`${file}.new`, text('max_concurrency = 32\n[server]\nlisten = "127.0.0.1:1"\n'))
    renameSync(`${file}.new`, file)
    const [, replaced] = await logged('config.changed', 2)

    expect(replaced).toContain('"from":30,"to":32')
    expect(await fleet.json('/api/v1/nodes/a')).toMatchObject({ maxConcurrency: 32 })
    const words = (await Promise.all(bodies)).map((body) => [chatText(body).split(' ').length, body.includes('[DONE]')])
    expect(words).toEqual(Array.from({ length: 20 }, () => [80, true]))
  }, 60_000)
})

const chat = (url: string): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
  })
