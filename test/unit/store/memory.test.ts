import { expect, test } from 'bun:test'
import { openMemoryStore } from '../../../src/store/memory'
import { record } from '../observe/builders'
import { manualClock } from './manual-clock'

const openFor = (maxRecords: number) => {
  const clock = manualClock()
  const store = openMemoryStore({ keepTracesMs: 1_000_000, clock, maxRecords })
  const save = (id: string, version = '1') => {
    clock.advance(1)
    store.save(record({ id, version, at: clock.now() }))
  }
  const ids = () => store.list({ limit: 1_000 }).map(({ id }) => id)
  return { store, save, ids }
}

test('the newest stay, however many went before', () => {
  const { save, ids } = openFor(3)
  for (let i = 0; i < 100; i++) save(`req_${i}`)

  expect(ids()).toEqual(['req_99', 'req_98', 'req_97'])
})

test('a record that is saved again is one, as old as its last save', () => {
  const { store, save, ids } = openFor(3)
  for (const id of ['a', 'b', 'c']) save(id)
  save('a', '2')
  save('d')

  expect(ids()).toEqual(['d', 'a', 'c'])
  expect(store.get('a')?.version).toBe('2')
})
