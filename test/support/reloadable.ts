/** A real router over a real configuration file in a folder of its own, so that the file can be changed under it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Disk, loadFromDisk } from '../../src/config/from-disk'
import { createFileSource } from '../../src/config/source'
import type { Fact } from '../../src/domain/facts'
import { openRouter, type Router } from '../../src/router'
import type { FakeNode } from '../../src/sim/fake/options'
import { until } from './fakes'

export interface Reloadable {
  readonly router: Router
  readonly url: string
  readonly folder: string
  readonly file: string
  readonly facts: readonly Fact[]
  of<T extends Fact['type']>(type: T): Extract<Fact, { type: T }>[]
  /** Replaces the text of the file and has it read. */
  reload(text: string): 'applied' | 'rejected'
  write(text: string): void
  chat(model?: string, headers?: Readonly<Record<string, string>>): Promise<Response>
}

/** The lines of a node in fleet.toml. */
export const nodeToml = (name: string, { url, kind }: Pick<FakeNode, 'url' | 'kind'>, more = ''): string =>
  `[[nodes]]\nname = "${name}"\nkind = "${kind === 'llamacpp-router' ? 'llamacpp' : kind}"\nurl = "${url}"\n${more}\n`

/** What every file here begins with: nothing is looked for, and failures are seen soon. */
export const HEAD = `
[server]
listen = "127.0.0.1:0"
[discovery]
local = false
[state]
backend = "memory"
[log]
level = "silent"
`

export const withReloadable = async <T>(
  text: string,
  run: (bench: Reloadable) => Promise<T>,
  env: Readonly<Record<string, string>> = {},
): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-reload-'))
  const file = join(folder, 'fleet.toml')
  writeFileSync(file, text)
  const disk: Disk = { env, cwd: folder, read: (path) => readFileSync(path, 'utf8'), exists: existsSync }
  const first = loadFromDisk(disk, 'fleet.toml')
  if (first.config === undefined) throw new Error(JSON.stringify(first.problems))
  const source = createFileSource({ disk, named: 'fleet.toml', flags: {}, first })
  const router = await openRouter(first.config, {}, { version: '0.0.0', commit: 'test' }, source)
  const facts: Fact[] = []
  router.listenTo((fact) => facts.push(fact))
  const write = (next: string): void => writeFileSync(file, next)
  try {
    await until(() => router.fleet.nodes().every(({ health }) => health !== 'unknown'), 5_000)
    return await run({
      router,
      url: router.url,
      folder,
      file,
      facts,
      of: <T extends Fact['type']>(type: T) =>
        facts.filter((fact) => fact.type === type) as Extract<Fact, { type: T }>[],
      write,
      reload: (next) => {
        write(next)
        return router.reloader?.reload('signal').outcome ?? 'rejected'
      },
      chat: (model = 'm', headers = {}) =>
        fetch(`${router.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hi' }] }),
        }),
    })
  } finally {
    await router.stopListening(true)
    await router.fleet.stop(0)
    router.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
