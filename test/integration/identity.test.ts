import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fastModel, getJson, type Json, postJson, readJson, until } from '../support/fakes'
import { HEAD, nodeToml, withReloadable } from '../support/reloadable'
import { withFakes } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'

/** An Ollama with these weights under the name `m`. */
const ollama = (digest: string) => ({ kind: 'ollama', models: [fastModel('m:8b', { digest })] }) as const

const health = { pollEveryMs: 50 } as const

const idsOf = async (url: string): Promise<string[]> =>
  (await getJson(`${url}/v1/models`)).json.data.map(({ id }: Json) => id)

const nodeFor = async ({ chat }: Bench, model: string): Promise<string | null> => {
  const answer = await chat({ model, stream: false })
  expect((await readJson(answer)).model).toBe(model)
  return answer.headers.get('x-fleet-node')
}

test('models of one name and other weights are two: the plain name reaches the first only, the number the second', () =>
  withFakes([ollama('h1'), ollama('h2'), { kind: 'llamacpp', models: [fastModel('m:8b')] }], (a, b, c) =>
    withReloadable(HEAD + nodeToml('a', a!), async ({ url, reload, router, chat }) => {
      reload(HEAD + nodeToml('a', a!) + nodeToml('b', b!) + nodeToml('c', c!))
      await until(() => router.fleet.nodes().every(({ health: is }) => is === 'online'))

      expect(await idsOf(url)).toEqual(['m:8b', 'm:8b-2'])
      const [first, second] = router.fleet.models()
      // What tells no hash counts as the first, and says so.
      expect(first?.nodes.map(({ node, sameBy }) => [node, sameBy])).toEqual([
        ['a', 'hash'],
        ['c', 'name'],
      ])
      expect(second?.nodes.map(({ node, name, sameBy }) => [node, name, sameBy])).toEqual([['b', 'm:8b', 'hash']])

      for (let round = 0; round < 4; round++) {
        const plain = await chat('m:8b')
        expect(['a', 'c']).toContain(plain.headers.get('x-fleet-node') ?? '')
        await plain.text()
        const numbered = await chat('M:8B-2')
        expect(numbered.headers.get('x-fleet-node')).toBe('b')
        expect(await numbered.text()).toContain('"model":"M:8B-2"')
      }
      expect(b!.log.filter(({ path }) => path === '/api/chat').map(({ body }) => (body as Json).model)).toEqual(
        Array(4).fill('m:8b'),
      )
      expect((await postJson(`${url}/api/show`, { model: 'm:8b-2' })).status).toBe(200)
      expect((await postJson(`${url}/api/show`, { model: 'm:8b-3' })).status).toBe(404)
    }),
  ))

test('the numbers are kept over a restart, whichever node answers first and whatever is new', async () => {
  const path = mkdtempSync(join(tmpdir(), 'fleet-identity-'))
  const state = { backend: 'sqlite', path } as const
  const run = (nodes: Readonly<Record<string, string>>, check: (bench: Bench) => Promise<void>) =>
    withRouter(
      Object.values(nodes).map(ollama),
      { state, health, describe: (index) => ({ name: Object.keys(nodes)[index] ?? '' }) },
      check,
    )
  try {
    await run({ old: 'h1' }, async ({ url }) => expect(await idsOf(url)).toEqual(['m:8b']))
    await run({ newer: 'h2', old: 'h1' }, async ({ url }) => expect(await idsOf(url)).toEqual(['m:8b', 'm:8b-2']))
    await run({ newest: 'h3', newer: 'h2', old: 'h1' }, async (bench) => {
      expect(await idsOf(bench.url)).toEqual(['m:8b', 'm:8b-2', 'm:8b-3'])
      expect(await nodeFor(bench, 'm:8b')).toBe('old')
      expect(await nodeFor(bench, 'm:8b-2')).toBe('newer')
      expect(await nodeFor(bench, 'm:8b-3')).toBe('newest')
    })
    // The first is off: its name does not go to another.
    await run({ newer: 'h2' }, async (bench) => {
      expect(await idsOf(bench.url)).toEqual(['m:8b-2'])
      expect((await bench.chat({ model: 'm:8b' })).status).toBe(404)
    })
  } finally {
    rmSync(path, { recursive: true })
  }
})

test('aliases and names of one model change with the configuration while requests run', () =>
  withFakes([{ kind: 'openai', models: [fastModel('x'), fastModel('y')] }], (a) => {
    const node = nodeToml('a', a!)
    const text = (names: string): string => `${HEAD}[health]\npoll_every = "100ms"\n${names}\n${node}`
    return withReloadable(text('[aliases]\nsmart = "x"'), async ({ url, chat, reload, of }) => {
      expect(await idsOf(url)).toEqual(['smart', 'x', 'y'])

      expect(reload(text('[aliases]\nsmart = ["y", "x"]\nother = "x"'))).toBe('applied')
      expect(await idsOf(url)).toEqual(['other', 'smart', 'x', 'y'])
      expect((await chat('smart')).headers.get('x-fleet-model')).toBe('y')
      expect(of('config.changed').map(({ key, from, to }) => [key, from, to])).toEqual([
        ['aliases.smart', 'x', ['y', 'x']],
        ['aliases.other', null, 'x'],
      ])

      expect(reload(text('[aliases]\nsmart = "smart"'))).toBe('rejected')
      expect((await chat('other')).headers.get('x-fleet-model')).toBe('x')

      expect(reload(text('[[same_model]]\nid = "one"\nnames = ["x"]'))).toBe('applied')
      await until(() => of('config.changed').some(({ key }) => key === 'same_model.one'))
      for (const model of ['one', 'x']) {
        let answer = await chat(model)
        // The next poll brings the new name.
        for (let tries = 0; tries < 20 && answer.headers.get('x-fleet-model') !== 'one'; tries++) {
          await answer.text()
          await Bun.sleep(50)
          answer = await chat(model)
        }
        expect(answer.headers.get('x-fleet-model')).toBe('one')
        await answer.text()
      }
      expect(await idsOf(url)).toEqual(['one', 'y'])
    })
  }))
