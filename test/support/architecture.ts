/** The rules of the house about imports and code, as functions of a set of files. */
import { dirname, join } from 'node:path'
import { codeOnly, importsOf } from './source'

/** Path from the repository's root -> text. */
export type Files = ReadonlyMap<string, string>

const core = ['domain', 'ports']
const pure = ['placement', 'lending', 'learning', 'catalog']

/** Folder -> what it may import besides itself: folders, or single files of a folder. `*` is everything. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  ports: ['domain'],
  ...Object.fromEntries(pure.map((folder) => [folder, [...core, ...pure]])),
  actors: [...core, ...pure],
  wire: core,
  nodes: [...core, 'wire'],
  cluster: [...core, 'wire'],
  http: [...core, 'wire', 'observe/headers', 'observe/because', 'observe/explain'],
  store: [...core, 'learning'],
  observe: core,
  config: core,
  sim: core,
  cli: [...core, 'config', 'observe/because', 'observe/explain', 'observe/why-not', 'observe/words'],
  'main.ts': ['*'],
  // The composition root; `main.ts` is the command line around it.
  'router.ts': ['*'],
  'system.ts': ['ports', 'coarse-timers.ts', 'forward-time.ts'],
  'coarse-timers.ts': [],
  'forward-time.ts': [],
  // Beside `main.ts`: only there do the executable and a clone look for a thread's code at the same place.
  'checkpoint-thread.ts': ['store'],
  'checkpoint-worker.ts': [],
  'sim/run.ts': ['*'],
}

/** Packages by folder; a folder that is not named here may use any. */
const mayUse: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries([...core, ...pure].map((folder) => [folder, []])),
  // Pure as well: text in, text out.
  wire: ['jsonrepair'],
  actors: ['xstate'],
}

/** Where the same input has to give the same output, so that a simulation repeats and a test needs no clock. */
const deterministic = [...core, ...pure, 'wire', 'actors']

const world = [
  'Bun',
  'Date',
  'clearInterval',
  'clearTimeout',
  'crypto',
  'fetch',
  'performance',
  'process',
  'setImmediate',
  'setInterval',
  'setTimeout',
]

const longestFile = 400

/** Every breach, one line each: `path: what is wrong`. */
export const breaches = (files: Files): string[] => [
  ...[...files].flatMap(([path, text]) => fileBreaches(files, path, text).map((breach) => `${path}: ${breach}`)),
  ...cycles(files).map((cycle) => `cycle: ${cycle.join(' -> ')}`),
]

const fileBreaches = (files: Files, path: string, text: string): string[] => [
  ...importBreaches(files, path, text),
  ...worldBreaches(path, text),
  ...formBreaches(text),
]

const importBreaches = (files: Files, path: string, text: string): string[] => {
  const own = folderOf(path)
  const allowed = mayImport[own]
  if (!allowed) return [`the folder ${own} has no import rule`]
  return importsOf(text).flatMap((specifier) => {
    if (!specifier.startsWith('.')) {
      const name = packageOf(specifier)
      return mayUse[own]?.includes(name) === false ? [`imports the package ${name}, which ${own} may not use`] : []
    }
    const target = resolve(files, path, specifier)
    const folder = folderOf(target)
    const permitted = folder === own || allowed.some((entry) => ['*', folder, withoutEnding(target)].includes(entry))
    return permitted ? [] : [`imports ${target}, which ${own} may not`]
  })
}

const worldBreaches = (path: string, text: string): string[] => {
  if (!deterministic.includes(folderOf(path))) return []
  const code = codeOnly(withoutTypes.transformSync(text))
  const used = world.filter((name) => usesGlobal(code, name))
  return [...used, ...(/\bMath\s*\.\s*random\b/.test(code) ? ['Math.random'] : [])].map((name) => `uses ${name}`)
}

/** Transpiled, a file has no interfaces left, whose methods look like calls (`Clock.setTimeout`). */
const withoutTypes = new Bun.Transpiler({ loader: 'ts' })

/** The name stands alone: not a property (`clock.setTimeout`), not a key, not the name of a method. */
const usesGlobal = (code: string, name: string): boolean =>
  [...code.matchAll(new RegExp(`(?<![.\\w$])${name}(?![\\w$])(?!\\s*:[^:])`, 'g'))].some(
    ({ index }) => !/^\([^()]*\)\s*\{/.test(code.slice(index + name.length)),
  )

const formBreaches = (text: string): string[] => {
  const code = codeOnly(text)
  const lines = text.split('\n')
  const codeLines = code.split('\n')
  const length = text.endsWith('\n') ? lines.length - 1 : lines.length
  return [
    ...(length > longestFile ? [`has ${length} lines, more than ${longestFile}`] : []),
    ...(/\bexport\s+default\b|\bas\s+default\b/.test(code) ? ['has a default export'] : []),
    ...(/\benum\s+\w+\s*\{/.test(code) ? ['has an enum'] : []),
    ...codeLines.flatMap((line, at) =>
      /(?<![.\w$])any(?![\w$])(?!\s*[(:?=])/.test(line) && !lines[at - 1]?.includes('lint/suspicious/noExplicitAny: ')
        ? [`line ${at + 1} has the type any`]
        : [],
    ),
  ]
}

/** Each cycle of imports once, from its first file in the order of paths. */
const cycles = (files: Files): string[][] => {
  const edges = new Map(
    [...files].map(([path, text]) => [
      path,
      importsOf(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => resolve(files, path, specifier))
        .filter((target) => files.has(target)),
    ]),
  )
  const done = new Set<string>()
  const found: string[][] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      found.push([...trail.slice(start), path])
      return
    }
    if (done.has(path)) return
    for (const target of edges.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of [...files.keys()].toSorted()) visit(path, [])
  return found
}

/** `src/http/routes/x.ts` -> `http`, `actors/y.ts` -> `actors`; composition roots are their own folder. */
const folderOf = (path: string): string => {
  const inside = path.replace(/^src\//, '')
  return mayImport[inside] ? inside : (inside.split('/')[0] ?? inside)
}

const withoutEnding = (path: string): string => path.replace(/^src\//, '').replace(/\.tsx?$/, '')

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

const resolve = (files: Files, from: string, specifier: string): string => {
  const base = join(dirname(from), specifier)
  return [base, `${base}.ts`, `${base}.tsx`, `${base}/index.ts`].find((path) => files.has(path)) ?? base
}
