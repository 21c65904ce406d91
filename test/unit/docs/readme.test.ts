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
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The lines of a section, from its heading to the next of any level. */
const section = (heading: string): string => {
  const start = readme.indexOf(`\n${heading}\n`)
  expect(start).toBeGreaterThan(0)
  const end = readme.slice(start + heading.length + 2).search(/\n#+ /)
  return readme.slice(start, end < 0 ? undefined : start + heading.length + 2 + end)
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

describe('the README', () => {
  test('has every metric, with its type, labels and meaning, and no other', () => {
    const rows = section('### Metrics')
      .split('\n')
      .filter((line) => line.startsWith('| `fleet_'))

    expect(rows).toEqual(allFamilies(createFamilies()).map((family) => metricRow(family as Family)))
  })

  test('has every reason to eliminate, in the order of the checks, and whether waiting cures it', () => {
    const rows = [...section('## How a request is decided').matchAll(/^ +\| `(\w+)` \| [^|]+ \| (yes|no) \|$/gm)]

    expect(rows.map(([, name, cure]) => ({ name, temporary: cure === 'yes' }))).toEqual(
      filters.map(({ name, temporary }) => ({ name, temporary })),
    )
  })

  test('has the policies that may be configured', () => {
    const rows = [...section('## How a request is decided').matchAll(/^ +\| (`[\w-]+`[^|]*) \| (?:early|late) \|/gm)]
    const names = rows.flatMap(([, row = '']) => [...row.matchAll(/`([\w-]+)`/g)].map(([, name]) => name))

    expect(names.toSorted()).toEqual(
      (FleetFile.properties.policy.properties.use as unknown as { enum: string[] }).enum.toSorted(),
    )
  })

  test('has every kind of node', () => {
    const { enum: kinds } = FleetFile.properties.nodes.items.properties.kind as unknown as { enum: string[] }

    expect(readme).toContain(`# ${kinds.join(' | ')}\n`)
  })

  test('has every path of the API', () => {
    const deps = { dialects, clock: { now: () => 0 }, config: {} } as unknown as ServerDeps
    const text = section('## API')
    const spelled = createRoutes(deps).map(({ path }) => path.replace('/:id/', '/NAME/').replace(/\/\*$/, '/'))
    // The verbs on nodes share a row.
    const missing = spelled.filter((path) => !text.includes(path) && !text.includes(`/${path.split('/').at(-1)}\``))

    expect(spelled.length).toBeGreaterThan(20)
    expect(missing).toEqual([])
  })

  test('has every exit code', () => {
    const codes = [...section('### Exit codes and signals').matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code))

    expect(codes).toEqual(Object.values(exitCode))
  })

  test('has what fleet help prints', () => {
    expect(readme).toContain(`$ fleet help\n${help()}`)
  })

  test('draws the supervision tree that the wiring draws', () => {
    const wiring = readFileSync(join(root, 'actors/wiring.ts'), 'utf8')
    const drawn = [...wiring.matchAll(/^ \* {5}(.*(?:fleet|[├│└]).*)$/gm)].map(([, line = '']) => line)
    const [, tree = ''] = /<!-- tree:begin -->\n```\n([\s\S]*?)\n```\n<!-- tree:end -->/.exec(readme) ?? []

    expect(drawn.length).toBeGreaterThan(5)
    expect(tree.split('\n')).toEqual(drawn)
  })

  test('has a place for the benchmark', () => {
    expect(readme).toMatch(/<!-- bench:begin -->[\s\S]*<!-- bench:end -->/)
  })
})

test.each(['README.md', 'actors/README.md', 'src/wire/README.md', 'src/nodes/README.md'])(
  'every link of %s leads to a file',
  (path) => {
    const links = [...readFileSync(join(root, path), 'utf8').matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link)
    const broken = links.filter((link) => !/^https?:/.test(link) && !existsSync(join(root, dirname(path), link)))

    expect(broken).toEqual([])
  },
)
