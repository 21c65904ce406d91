import { edenGC, fullGC, heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { SlotMap } from '../../../src/domain/slot-map'

test('it is a map: values by key, in the order in which the keys came', () => {
  const map = new SlotMap<number>().set('a', 1).set('b', 2).set('c', 3).set('a', 4)

  expect([...map]).toEqual([
    ['a', 4],
    ['b', 2],
    ['c', 3],
  ])
  expect([...map.keys()]).toEqual(['a', 'b', 'c'])
  expect([...map.values()]).toEqual([4, 2, 3])
  expect(map.size).toBe(3)
  expect(map.has('b')).toBe(true)
  expect(map.get('z')).toBeUndefined()
})

test('what is deleted or taken is gone, once, and its place is used again', () => {
  const map = new SlotMap<string>().set('a', 'x').set('b', 'y')

  expect(map.delete('a')).toBe(true)
  expect(map.delete('a')).toBe(false)
  expect(map.take('b')).toBe('y')
  expect(map.take('b')).toBeUndefined()
  expect(map.size).toBe(0)
  expect([...map.set('c', 'z')]).toEqual([['c', 'z']])
  map.clear()
  expect([...map]).toEqual([])
  expect([...map.set('d', 'w').values()]).toEqual(['w'])
})

test('it agrees with a Map over random operations', () => {
  const ours = new SlotMap<number>()
  const theirs = new Map<string, number>()
  let seed = 7
  for (let step = 0; step < 20_000; step++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    const key = `k${seed % 50}`
    if (seed & 0x10000) {
      ours.set(key, step)
      theirs.set(key, step)
    } else expect(ours.delete(key)).toBe(theirs.delete(key))
  }
  expect([...ours]).toEqual([...theirs])
})

/** A closure is counted by its own type, which nothing else makes here. */
class Probe {
  readonly mark = (): this => this
}

const survivors = (step: (index: number) => void): number => {
  const functions = (): number => heapStats().objectTypeCounts.Function ?? 0
  for (let index = 0; index < 20_000; index++) step(index)
  fullGC()
  for (let index = 20_000; index < 24_000; index++) step(index)
  edenGC()
  const young = functions()
  fullGC()
  return young - functions()
}

test('what came and went in it does not survive a minor collection, as it does in a Map', () => {
  const ours = new SlotMap<Probe>()
  const theirs = new Map<string, Probe>()

  const inMap = survivors((index) => {
    theirs.set(`k${index}`, new Probe())
    theirs.delete(`k${index - 8}`)
  })
  const inSlots = survivors((index) => {
    ours.set(`k${index}`, new Probe())
    ours.delete(`k${index - 8}`)
  })

  // Should the engine's own map stop doing this one day, this class has had its time.
  expect(inMap).toBeGreaterThan(2_000)
  expect(inSlots).toBeLessThan(200)
})
