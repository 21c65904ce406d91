import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { breaches } from './support/architecture'
import { codeOnly, importsOf } from './support/source'

const root = join(import.meta.dir, '..')

const files = (entries: Readonly<Record<string, string>>) => new Map(Object.entries(entries))

test('the code keeps to its own rules', () => {
  const paths = [...new Bun.Glob('{src,actors}/**/*.{ts,tsx}').scanSync({ cwd: root })].filter(
    (path) => !path.includes('.gen.'),
  )
  const tree = new Map(paths.toSorted().map((path) => [path, readFileSync(join(root, path), 'utf8')]))

  expect(tree.size).toBeGreaterThan(20)
  expect(breaches(tree)).toEqual([])
})

describe('a breach is found', () => {
  test.each([
    ['ports', "import { route } from '../http/route'", 'imports src/http/route, which ports may not'],
    ['domain', "import type { Clock } from '../ports/clock'", 'imports src/ports/clock, which domain may not'],
    ['placement', "export { serve } from '../wire/openai'", 'imports src/wire/openai, which placement may not'],
    ['http', "import { ollama } from '../nodes/ollama'", 'imports src/nodes/ollama, which http may not'],
    ['http', "const fleet = await import('../../actors/index')", 'imports actors/index, which http may not'],
    ['wire', "import { log } from '../observe/log'", 'imports src/observe/log, which wire may not'],
    ['store', "import { schema } from '../config/schema'", 'imports src/config/schema, which store may not'],
    ['observe', "import { openStore } from '../store/sqlite'", 'imports src/store/sqlite, which observe may not'],
    ['novelty', '', 'the folder novelty has no import rule'],
    ['placement', "import { setup } from 'xstate'", 'imports the package xstate, which placement may not use'],
    [
      'wire',
      "import { Type } from '@sinclair/typebox/type'",
      'imports the package @sinclair/typebox, which wire may not use',
    ],
    ['learning', 'const at = Date.now()', 'uses Date'],
    ['placement', 'const pick = Math.random()', 'uses Math.random'],
    ['ports', 'setTimeout(() => {}, 5)', 'uses setTimeout'],
    ['wire', 'const answer = await fetch(url)', 'uses fetch'],
    ['domain', 'const { HOME } = process.env', 'uses process'],
    ['catalog', 'const id = crypto.randomUUID()', 'uses crypto'],
    ['lending', 'const hash = Bun.hash(text)', 'uses Bun'],
    ['nodes', 'export default {}', 'has a default export'],
    ['nodes', 'enum Kind { a }', 'has an enum'],
    ['nodes', 'const value = answer as any', 'line 1 has the type any'],
    ['nodes', 'const list: Map<string, any[]> = new Map()', 'line 1 has the type any'],
    ['nodes', '\n'.repeat(401), 'has 401 lines, more than 400'],
  ])('%s: %s', (folder, text, breach) => {
    const path = `src/${folder}/planted.ts`

    expect(breaches(files({ [path]: text }))).toEqual([`${path}: ${breach}`])
  })

  test('in actors as well', () => {
    const planted = files({
      'actors/a.ts': "import { join } from 'node:path'\nimport { read } from '../src/http/body'\nsetInterval(tick, 1)",
      'src/http/body.ts': '',
    })

    expect(breaches(planted)).toEqual([
      'actors/a.ts: imports the package node:path, which actors may not use',
      'actors/a.ts: imports src/http/body.ts, which actors may not',
      'actors/a.ts: uses setInterval',
    ])
  })

  test('a cycle, over whatever number of files', () => {
    const planted = files({
      'src/wire/a.ts': "import { b } from './b'",
      'src/wire/b.ts': "import type { C } from './deep'",
      'src/wire/deep/index.ts': "export * from '../a'",
    })

    expect(breaches(planted)).toEqual([
      'cycle: src/wire/a.ts -> src/wire/b.ts -> src/wire/deep/index.ts -> src/wire/a.ts',
    ])
  })
})

describe('what is allowed passes', () => {
  test.each([
    ['src/main.ts', "import { startFleet } from '../actors'\nimport { createServer } from './http/server'"],
    ['src/sim/run.ts', "import { startFleet } from '../../actors'"],
    ['actors/node.machine.ts', "import { setup } from 'xstate'\nimport { place } from '../src/placement/place'"],
    [
      'src/http/routes/a.ts',
      "import { replyHeaders } from '../../observe/headers'\nimport type { Dialect } from '../../wire/dialect'",
    ],
    ['src/ports/clock.ts', 'export interface Clock { setTimeout(run: () => void, ms: number): unknown }'],
    ['src/placement/a.ts', 'export const arm = (clock: Clock) => clock.setTimeout(() => {}, 5)'],
    ['src/placement/a.ts', 'export const clock = { setTimeout(run) { run() }, process: 1 }'],
    ['src/placement/a.ts', '// Date.now() is not for us, nor is fetch\nexport const text = "process and any"'],
    ['src/nodes/a.ts', 'const signal = AbortSignal.any([first, second])'],
    ['src/nodes/a.ts', '// biome-ignore lint/suspicious/noExplicitAny: the package says so\nconst value: any = given'],
    ['src/nodes/a.ts', '\n'.repeat(400)],
  ])('%s: %s', (path, text) => {
    expect(breaches(files({ [path]: text }))).toEqual([])
  })
})

describe('reading source', () => {
  test('imports of every form are found, and none in comments and strings', () => {
    const text = `
      import './side-effect'
      import type { A } from './types'
      import {
        b,
        c,
      } from "./many"
      export * from './again'
      const lazy = await import('./lazy')
      // import { no } from './comment'
      const prose = "import { no } from './string'"
      const url = \`from './template'\`
    `

    expect(importsOf(text)).toEqual(['./side-effect', './types', './many', './again', './lazy'])
  })

  test.each([
    ['a string', `f('//', "/*") + g`, `f('  ', "  ") + g`],
    ['a quote in a string', `f('it\\'s') + g`, `f('     ') + g`],
    ['a template with code in it', `\`a \${b + \`c \${d}\`} e\` + g`, `\`  \${b + \`  \${d}\`}  \` + g`],
    ['an object in a template', `\`\${{ a: 1 }.a} b\` + g`, `\`\${{ a: 1 }.a}  \` + g`],
    ['a regular expression', "f(/['/]\\//) + 'x'", "f(/      /) + ' '"],
    ['a division', 'a / b / c', 'a / b / c'],
    ['a comment', 'a /* b */ + c // d', 'a         + c     '],
  ])('%s', (_, text, expected) => {
    expect(codeOnly(text)).toBe(expected)
  })
})
