import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { host, resident } from '../support/host'

const root = join(import.meta.dir, '../..')
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

const fromReadme = (): string[] => {
  const [, block = ''] =
    /<!-- tree:begin -->\s*```\w*\n([\s\S]*?)```\s*<!-- tree:end -->/.exec(textOf('README.md')) ?? []
  return block.trimEnd().split('\n')
}

const fromWiring = (): string[] =>
  (/ \* {5}fleet\n(?: \* {5}[├└│ ].*\n)+/.exec(textOf('actors/wiring.ts'))?.[0] ?? '')
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^ \* {5}/, ''))

/** `queue/<node>/<model> < queues` for each line of a drawn tree: who, and under whom. */
const drawn = (lines: readonly string[]): string[] => {
  const above: string[] = []
  return lines.map((line) => {
    const [, indent = '', name = ''] = /^([│├└─ ]*)(\S+)/.exec(line) ?? []
    const depth = indent.length / 4
    above[depth] = name
    return depth === 0 ? name : `${name} < ${above[depth - 1]}`
  })
}

const kindOf = (id: string): string => {
  const [family = '', ...rest] = id.split('/')
  if (rest.length === 0) return family
  if (family === 'queue') return 'queue/<node>/<model>'
  return `${family}/${family === 'request' ? '<id>' : '<name>'}`
}

/** A fleet in which every kind of actor is alive. */
const liveTree = async () => {
  const h = host({ 'rig-4090': resident('qwen3:8b'), mini: resident('m') })
  await h.ready()
  h.submit({ asked: 'qwen3:8b', models: ['qwen3:8b'] })
  await h.clock.advance(0)
  return h.fleet.actors()
}

test('the live supervision tree is the one that the README draws', async () => {
  const actors = await liveTree()
  const live = new Set(
    actors.map(({ id, parent }) => (parent === undefined ? kindOf(id) : `${kindOf(id)} < ${kindOf(parent)}`)),
  )

  const print = (parent: string | undefined, indent: string): void => {
    for (const { id, state } of actors.filter((actor) => actor.parent === parent)) {
      console.log(`${indent}${id.padEnd(28)} ${state}`)
      print(id, `${indent}    `)
    }
  }
  print(undefined, '')
  expect(fromReadme().length).toBeGreaterThan(5)
  expect([...live].sort()).toEqual(drawn(fromReadme()).sort())
})

test('and the wiring says the same', () => {
  expect(fromWiring()).toEqual(fromReadme())
})

test('every actor is known to the system by the address that the tree shows', async () => {
  const h = host({ a: resident() })
  await h.ready()
  h.submit()
  await h.clock.advance(0)

  const shown = h.fleet.actors().map(({ id }) => id)
  expect(Object.keys(h.fleet.root.system.getAll()).sort()).toEqual([...shown].sort())
})
