import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What went wrong in routers like this one and must not go wrong here: each id stands for one story with its demand.
 * A new case is added here, by its letter, and named in the test that proves it: `test('BL-S05 no retry after …')`.
 */
const PASSED: Readonly<Record<string, readonly string[]>> = {
  /** Streaming. */
  S: ['01', '02', '04', '05', '07', '08'],
  /** Disconnect and cancel. */
  D: ['01', '02', '03', '05', '06', '08', '09', '11'],
  /** Timeouts. */
  T: ['01', '02', '04', '05', '06', '07'],
  /** Health. */
  H: ['01', '02', '03', '04', '08', '09', '11', '12'],
  /** Races. */
  R: ['01', '02', '06'],
  /** Queues. */
  Q: ['05', '06', '08'],
  /** Cold loads and memory. */
  C: ['01', '02', '03', '08'],
  /** Protocols. */
  P: ['01', '02', '03', '06', '08', '09', '10', '11', '13'],
  /** Names of models. */
  N: ['01', '02', '03', '05', '07'],
  /** Counting and logs. */
  L: ['01', '02', '05'],
  /** Routers that start again. */
  K: ['08'],
  /** Characters. */
  I: ['01'],
  /** Machines that sleep. */
  O: ['06'],
  /** Configuration. */
  G: ['01', '03'],
  /** Shutdown. */
  Z: ['01'],
  /** Bodies and back-pressure. */
  B: ['01', '03', '05'],
  /** Keys and headers. */
  A: ['01', '03', '05'],
  /** Connections to nodes. */
  V: ['01', '02'],
  /** Seen beside other routers. */
  W: ['01', '02', '03', '04', '05', '06', '07'],
  /** Embeddings. */
  E: ['01', '02', '05'],
  /** Pictures. */
  M: ['01', '02', '04', '06'],
  /** Windows of context. */
  X: ['01', '02', '05'],
  /** Actors in great numbers. */
  Y: ['01', '03', '05'],
}

const here = join(import.meta.dir)
const listed = Object.entries(PASSED).flatMap(([letter, numbers]) => numbers.map((number) => `BL-${letter}${number}`))

/** Names of tests and of their groups, with the file that they stand in. */
const NAME =
  /\b(?:test|it|describe)(?:\.each\b[^\n]*|\.serial|\.concurrent)?(?:<[^\n]*>)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g
/** `test.each([…])('name', …)`: the name follows the closing bracket of the table. */
const AFTER_TABLE = /\)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

/** What only the slow set proves is not proved at every change. */
const paths = [...new Bun.Glob('**/*.test.ts').scanSync({ cwd: here })].filter(
  (path) => !path.startsWith('slow/') && path !== 'cases.test.ts',
)
const tests = paths.toSorted().map((path) => {
  const text = readFileSync(join(here, path), 'utf8')
  const names = [...text.matchAll(NAME), ...text.matchAll(AFTER_TABLE)].map((match) => match[2] ?? '')
  return { path, text, ids: new Set(names.flatMap((name) => name.match(/\bBL-[A-Z]\d\d\b/g) ?? [])) }
})

test.each(listed)('%s is proved by a test that names it', (id) => {
  const proofs = tests.filter(({ ids }) => ids.has(id)).map(({ path }) => path)

  expect(proofs).not.toEqual([])
})

test('no id stands twice in the list, and none is written in another way', () => {
  expect(new Set(listed).size).toBe(listed.length)
  for (const id of listed) expect(id).toMatch(/^BL-[A-Z]\d\d$/)
})

test('every id in the name of a test is well formed', () => {
  const odd = tests.flatMap(({ path, text }) =>
    [...text.matchAll(NAME)].flatMap(([, , name = '']) =>
      (name.match(/\bBL-?\w*/g) ?? []).filter((id) => !/^BL-[A-Z]\d\d$/.test(id)).map((id) => `${path}: ${id}`),
    ),
  )

  expect(odd).toEqual([])
})

test('no test is left out', () => {
  const LEFT_OUT = /\b(?:test|it|describe)\.(?:skip|todo|only|if|skipIf|todoIf)\b|\bx(?:test|it|describe)\(/
  const left = tests.filter(({ text }) => LEFT_OUT.test(text)).map(({ path }) => path)

  expect(left).toEqual([])
})
