import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { exitCode } from '../../../src/cli/exit-codes'
import { help } from '../../../src/cli/help'
import { FleetFile } from '../../../src/config/schema'
import type { ServerDeps } from '../../../src/http/deps'
import { createRoutes } from '../../../src/http/routes'
import { allFamilies, createFamilies } from '../../../src/observe/families'
import { filters } from '../../../src/placement/filters'
import { dialects } from '../../../src/wire'

const root = join(import.meta.dir, '../../..')
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')
const readme = textOf('README.md')

/** The lines of a section, from its heading to the next of any level. */
const section = (heading: string, text = readme): string => {
  const start = text.indexOf(`\n${heading}\n`)
  expect(start).toBeGreaterThan(0)
  const end = text.slice(start + heading.length + 2).search(/\n#+ /)
  return text.slice(start, end < 0 ? undefined : start + heading.length + 2 + end)
}

type Family = ReturnType<typeof createFamilies>[keyof ReturnType<typeof createFamilies>]

/** A family's row of the table, from what it says of itself. */
const metricRow = (family: Family): string => {
  if ('add' in family) family.add(1)
  else family.observe(1)
  const text = family.render()
  const [, help = ''] = /# HELP \S+ (.*)/.exec(text) ?? []
  const [, type = ''] = /# TYPE \S+ (.*)/.exec(text) ?? []
  const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, name]) => name).filter((name) => name !== 'le'))
  const shown = labels.size === 0 ? '' : `\`${[...labels].join(' ')}\``
  return `| \`${family.name}\` | ${type} | ${shown} | ${help} |`
}

describe('the pages beside the README', () => {
  test('have every metric, with its type, labels and meaning, and no other', () => {
    const rows = textOf('docs/metrics.md')
      .split('\n')
      .filter((line) => line.startsWith('| `fleet_'))

    expect(rows).toEqual(allFamilies(createFamilies()).map((family) => metricRow(family as Family)))
  })

  test('have every reason to eliminate, in the order of the checks, and whether waiting cures it', () => {
    const rows = [...textOf('docs/placement.md').matchAll(/^\| `(\w+)` \| [^|]+ \| (yes|no) \|$/gm)]

    expect(rows.map(([, name, cure]) => ({ name, temporary: cure === 'yes' }))).toEqual(
      filters.map(({ name, temporary }) => ({ name, temporary })),
    )
  })

  test('have every path of the API', () => {
    const videos = { load: () => [] }
    const deps = { dialects, clock: { now: () => 0 }, config: {}, videos } as unknown as ServerDeps
    const text = section('## Paths', textOf('docs/api.md'))
    const spelled = createRoutes(deps).map(({ path }) => path.replace('/:id/', '/NAME/').replace(/\/\*$/, '/'))
    // The verbs on nodes share a row.
    const missing = spelled.filter((path) => !text.includes(path) && !text.includes(`/${path.split('/').at(-1)}\``))

    expect(spelled.length).toBeGreaterThan(20)
    expect(missing).toEqual([])
  })

  test('have every exit code', () => {
    const codes = [...section('## Exit codes', textOf('docs/commands.md')).matchAll(/^\| (\d+) \|/gm)].map(([, code]) =>
      Number(code),
    )

    expect(codes).toEqual(Object.values(exitCode))
  })

  test('have what fleet help prints', () => {
    expect(textOf('docs/commands.md')).toContain(`$ fleet help\n${help()}`)
  })

  test('have every header that requests may carry and answers do', () => {
    const read = [...textOf('src/http/context.ts').matchAll(/headers\.get\('(x-fleet-[\w-]+)'\)/g)]
    const written = [...textOf('src/observe/headers.ts').matchAll(/headers\['(X-Fleet-[\w-]+)'\]/g)]
    const page = textOf('docs/api.md').toLowerCase()
    const rowsOf = (heading: string) =>
      section(heading, page)
        .split('\n')
        .map((row) => row.split('|')[1] ?? '')
        .join()
    const missing = (names: typeof read, heading: string) =>
      names.map(([, name = '']) => `\`${name.toLowerCase()}\``).filter((name) => !rowsOf(heading).includes(name))

    expect(Math.min(read.length, written.length)).toBeGreaterThan(5)
    expect(missing(read, '## request headers')).toEqual([])
    expect(missing(written, '## answer headers')).toEqual([])
  })
})

describe('the README', () => {
  test('has the policies that may be configured', () => {
    const rows = [...section('### Policies').matchAll(/^\| (`[\w-]+`[^|]*) \| (?:early|late) \|/gm)]
    const names = rows.flatMap(([, row = '']) => [...row.matchAll(/`([\w-]+)`/g)].map(([, name]) => name))

    expect(names.toSorted()).toEqual(
      (FleetFile.properties.policy.properties.use as unknown as { enum: string[] }).enum.toSorted(),
    )
  })

  test('has every kind of node', () => {
    const { enum: kinds } = FleetFile.properties.nodes.items.properties.kind as unknown as { enum: string[] }

    expect(readme).toContain(`# ${kinds.join(' | ')}\n`)
  })

  test('draws the supervision tree that the wiring draws', () => {
    const wiring = textOf('actors/wiring.ts')
    const drawn = [...wiring.matchAll(/^ \* {5}(.*(?:fleet|[├│└]).*)$/gm)].map(([, line = '']) => line)
    const [, tree = ''] = /<!-- tree:begin -->\n```\n([\s\S]*?)\n```\n<!-- tree:end -->/.exec(readme) ?? []

    expect(drawn.length).toBeGreaterThan(5)
    expect(tree.split('\n')).toEqual(drawn)
  })

  test('has a place for the benchmark', () => {
    expect(readme).toMatch(/<!-- bench:begin -->[\s\S]*<!-- bench:end -->/)
  })
})

test.each([
  'README.md',
  'docs/api.md',
  'docs/commands.md',
  'docs/developing.md',
  'docs/metrics.md',
  'docs/placement.md',
  'docs/protocols.md',
  'actors/README.md',
  'src/wire/README.md',
  'src/nodes/README.md',
])('every link of %s leads to a file', (path) => {
  const links = [...textOf(path).matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link)
  const broken = links.filter((link) => !/^https?:/.test(link) && !existsSync(join(root, dirname(path), link)))

  expect(broken).toEqual([])
})
