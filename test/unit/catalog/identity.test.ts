import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createIdentities, type Identities } from '../../../src/catalog/identity'
import type { IdentityStore, Lineage } from '../../../src/ports/identities'

const HOUR = 3_600_000

const keeper = (): IdentityStore & { readonly kept: Map<string, Lineage> } => {
  const kept = new Map<string, Lineage>()
  return {
    kept,
    load: () => [...kept.values()],
    // As a database would: nothing of the object itself survives.
    save: (lineage) => void kept.set(lineage.key, JSON.parse(JSON.stringify(lineage))),
  }
}

/** `at` hours after the start. */
const world = ({ nodes = ['a', 'b', 'c'], store = keeper(), at = { hours: 1 } } = {}) => {
  let started = false
  const now = () => (started ? at.hours * HOUR : 0)
  const identities = createIdentities({ now, isConfigured: (node) => nodes.includes(node), store })
  started = true
  return { identities, store, lists: listing(identities) }
}

/** `lists('a', { 'm:8b': 'hash' })` is what the fleet then calls them. */
const listing =
  (identities: Identities) =>
  (node: string, models: Readonly<Record<string, string | undefined>>): readonly string[] =>
    identities.take(
      node,
      Object.entries(models).map(([name, digest]) => (digest === undefined ? { name } : { name, digest })),
    )

describe('models of one name', () => {
  test('with the same hash are one, with or without its prefix, in any case', () => {
    const { lists } = world()

    expect(lists('a', { 'qwen3:8b': 'AAAA' })).toEqual(['qwen3:8b'])
    expect(lists('b', { 'Qwen3:8B': 'sha256:aaaa' })).toEqual(['Qwen3:8B'])
  })

  test('with another hash get a number, and keep it', () => {
    const { lists } = world()
    lists('a', { 'qwen3:8b': 'h1', m: 'h1' })

    expect(lists('b', { 'qwen3:8b': 'h2', m: 'h2' })).toEqual(['qwen3:8b-2', 'm-2'])
    expect(lists('c', { 'qwen3:8b': 'h3', 'm:latest': 'h2' })).toEqual(['qwen3:8b-3', 'm-2'])
    expect(lists('a', { 'qwen3:8b': 'h1' })).toEqual(['qwen3:8b'])
    expect(lists('b', { 'qwen3:8b': 'h2' })).toEqual(['qwen3:8b-2'])
  })

  test('without a hash count as the first', () => {
    const { lists } = world()

    expect(lists('a', { m: undefined })).toEqual(['m'])
    expect(lists('b', { m: 'h1' })).toEqual(['m'])
    expect(lists('c', { m: 'h2' })).toEqual(['m-2'])
    expect(lists('a', { m: undefined })).toEqual(['m'])
  })

  test('never get a number that gives the name of another model', () => {
    const { lists } = world()
    lists('a', { m: 'h1', 'm-2': undefined, 'm-3': 'x' })

    expect(lists('b', { m: 'h2' })).toEqual(['m-4'])
    expect(lists('c', { 'm-4': 'y' })).toEqual(['m-4-2'])
    expect(lists('c', { 'm-4': undefined })).toEqual(['m-4-2'])
  })
})

describe('after a restart', () => {
  test('names are as before, whoever answers first', () => {
    const { lists, store } = world()
    lists('a', { m: 'h1' })
    lists('b', { m: 'h2' })

    const { lists: listsAgain } = world({ store })

    expect(listsAgain('c', { m: 'h3' })).toEqual(['m-3'])
    expect(listsAgain('b', { m: 'h2' })).toEqual(['m-2'])
    expect(listsAgain('a', { m: 'h1' })).toEqual(['m'])
  })

  test('a node that was found and not configured is waited for a while before its name goes to another', () => {
    const { lists, store } = world({ nodes: [] })
    lists('found', { m: 'h1' })

    const soon = world({ nodes: ['b'], store, at: { hours: 0.01 } })
    expect(soon.lists('b', { m: 'h2' })).toEqual(['m-2'])
    const late = world({ nodes: ['b'], store: copyOf(store, 'm-2'), at: { hours: 1 } })
    expect(late.lists('c', { m: 'h3' })).toEqual(['m'])
  })
})

/** What the first world left, without what came after it. */
const copyOf = (store: ReturnType<typeof keeper>, without: string): ReturnType<typeof keeper> => {
  const copy = keeper()
  const number = Number(without.split('-').at(-1))
  for (const lineage of store.kept.values())
    copy.save({ ...lineage, models: lineage.models.filter((model) => model.number !== number) })
  return copy
}

describe('a node that updates its model in place', () => {
  test('alone keeps the name', () => {
    const { lists } = world()
    lists('a', { m: 'h1' })

    expect(lists('a', { m: 'h2' })).toEqual(['m'])
  })

  test('also after it had removed the model, and while the router was down', () => {
    const { lists, store } = world()
    lists('a', { m: 'h1', other: 'x' })
    lists('a', { other: 'x' })

    expect(world({ store }).lists('a', { m: 'h2', other: 'x' })).toEqual(['m', 'other'])
  })

  test('while another has the old weights gets a number; when the last has followed, all are one again', () => {
    const { lists, identities } = world()
    lists('a', { m: 'h1' })
    lists('b', { m: 'h1' })

    expect(lists('a', { m: 'h2' })).toEqual(['m-2'])
    expect(identities.current('m-2')).toBe('m-2')
    expect(lists('b', { m: 'h2' })).toEqual(['m'])
    expect(lists('a', { m: 'h2' })).toEqual(['m'])
    expect(identities.current('M-2')).toBe('m')
    expect(lists('c', { m: 'h3' })).toEqual(['m-3'])
  })

  test('to what another has keeps nothing of its own', () => {
    const { lists } = world()
    lists('a', { m: 'h1' })
    lists('b', { m: 'h2' })

    expect(lists('b', { m: 'h1' })).toEqual(['m'])
    expect(lists('c', { m: 'h2' })).toEqual(['m-2'])
  })
})

describe('a name whose node', () => {
  test('has left goes to the next that brings the name', () => {
    const { lists, identities } = world({ nodes: ['b'] })
    lists('a', { m: 'h1' })
    identities.forget('a')

    expect(lists('b', { m: 'h2' })).toEqual(['m'])
  })

  test('is only down, or has not answered yet, stays with it', () => {
    const { lists, store } = world()
    lists('a', { m: 'h1' })

    expect(world({ store, nodes: ['a'] }).lists('b', { m: 'h2' })).toEqual(['m-2'])
  })
})

test('what does not change is not written again', () => {
  const { lists, store } = world()
  lists('a', { m: 'h1' })
  const before = store.kept.get('m')

  lists('a', { m: 'h1' })

  expect(store.kept.get('m')).toBe(before as Lineage)
})

test('two different models never share a name, whatever nodes list and in whatever order', () => {
  const names = ['m', 'm-2', 'm:latest', 'M', 'n', 'm-2-2']
  const report = fc.record({
    node: fc.constantFrom('a', 'b', 'c', 'd'),
    models: fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), digest: fc.constantFrom('h1', 'h2', 'h3') }), {
      selector: ({ name }) => name.toLowerCase().replace(':latest', ''),
      maxLength: 4,
    }),
  })

  fc.assert(
    fc.property(fc.array(report, { maxLength: 12 }), (reports) => {
      const { identities } = world({ nodes: ['a', 'b', 'c', 'd'] })
      const last = new Map<string, { readonly name: string; readonly digest: string }[]>()
      for (const { node, models } of reports) {
        identities.take(node, models)
        last.set(node, models)
      }
      const weights = new Map<string, string>()
      for (const [node, models] of last) {
        for (const [at, name] of identities.take(node, models).entries()) {
          const { name: own = '', digest = '' } = models[at] ?? {}
          const key = name.toLowerCase().replace(':latest', '')
          const is = `${own.toLowerCase().replace(':latest', '')} ${digest}`
          expect(weights.get(key) ?? is).toBe(is)
          weights.set(key, is)
        }
      }
    }),
    { numRuns: 500 },
  )
})
