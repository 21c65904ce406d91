import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLedger, type Reservation } from '../../../src/placement/ledger'
import { createRoom } from '../../../src/placement/room'
import { testJob } from '../../support/host'

const reservation = (request: string, change: Partial<Reservation> = {}): Reservation => ({
  request,
  attempt: 1,
  node: 'a',
  model: 'm',
  state: 'running',
  since: 0,
  ...change,
})

test('whatever is done to it, the counts are what it holds', () => {
  const step = fc.record({
    what: fc.constantFrom('reserve', 'release', 'linger', 'bind', 'unbind', 'grant', 'settle', 'observe'),
    request: fc.integer({ min: 0, max: 9 }),
    node: fc.constantFrom('a', 'b'),
    model: fc.constantFrom('m', 'M:latest', 'x'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const ledger = createLedger()
      const live = new Set<string>()
      for (const { what, request, node, model } of steps) {
        const id = `r${request}`
        if (what === 'reserve' && !live.has(id)) {
          ledger.reserve(reservation(id, { node, model }))
          live.add(id)
        } else if (what === 'release') {
          expect(ledger.release(id) !== undefined).toBe(live.delete(id))
        } else if (what === 'linger') {
          const kept = ledger.linger(id)
          expect(kept !== undefined).toBe(live.delete(id))
          if (kept !== undefined) live.add(kept.request)
        } else if (what === 'bind') ledger.bind(node, model)
        else if (what === 'unbind') ledger.unbind(node, model)
        else if (what === 'grant') ledger.grant(node, model)
        else if (what === 'settle') ledger.settleGrant(node, model)
        else if (what === 'observe') ledger.observe(node, model, request)
        ledger.check()
        expect(ledger.total()).toBe(live.size)
        expect(ledger.nodeInFlight('a') + ledger.nodeInFlight('b')).toBe(live.size)
      }
    }),
  )
})

test('a request holds one reservation, and names that mean the same model share one account', () => {
  const ledger = createLedger()
  ledger.reserve(reservation('r1', { model: 'm' }))
  ledger.reserve(reservation('r2', { model: 'M:latest' }))
  expect(ledger.account('a', 'm').reserved).toBe(2)
  expect(() => ledger.reserve(reservation('r1'))).toThrow('r1 holds a reservation already')
})

test('foreign load is what the engine runs beyond the most that we had there since its last report', () => {
  const ledger = createLedger()
  ledger.reserve(reservation('r1'))
  ledger.release('r1')
  // Ours ended while the report was under way: not foreign.
  ledger.observe('a', 'm', 1)
  expect(ledger.account('a', 'm').foreign).toBe(0)
  ledger.observe('a', 'm', 1)
  expect(ledger.account('a', 'm').foreign).toBe(1)
})

test('the room keeps priority, then arrival, also for those that come back', () => {
  const room = createRoom()
  const add = (id: string, arrivedAt: number, priority: 'critical' | 'normal' | 'batch' = 'normal') =>
    room.add({ job: testJob({ id, arrivedAt, priority }), attempt: 1, excluded: [] }, 'waiting', 'busy')
  add('late', 3)
  add('batch', 1, 'batch')
  add('early', 2)
  add('urgent', 4, 'critical')
  expect(room.entries().map(({ job }) => job.id)).toEqual(['urgent', 'early', 'late', 'batch'])
  expect(room.heads().map(({ job }) => job.id)).toEqual(['urgent'])
  room.remove('urgent')
  expect(room.heads().map(({ job }) => job.id)).toEqual(['early'])
})

test('the room has one head for each set of requests that the same nodes can serve, and counts per model', () => {
  const room = createRoom()
  for (const [id, change] of [
    ['plain', {}],
    ['plain2', {}],
    ['pinned', { pin: 'a' }],
    ['seeing', { needs: ['chat', 'vision'] as const }],
    ['other', { asked: 'x', models: ['x'] }],
  ] as const)
    room.add(
      { job: testJob({ id, ...change }), attempt: 1, excluded: [] },
      id === 'seeing' ? 'held' : 'waiting',
      'busy',
    )
  expect(
    room
      .heads()
      .map(({ job }) => job.id)
      .sort(),
  ).toEqual(['other', 'pinned', 'plain', 'seeing'])
  expect([room.sizeOf('m'), room.sizeOf('x'), room.size, room.heldCount]).toEqual([4, 1, 5, 1])
  expect(room.hasElder({ job: testJob(), excluded: [] })).toBe(true)
  expect(room.hasElder({ job: testJob({ pin: 'b' }), excluded: [] })).toBe(false)
  for (const id of ['plain', 'plain2', 'pinned', 'seeing', 'other']) room.remove(id)
  expect([room.sizeOf('m'), room.size, room.heldCount, room.heads().length]).toEqual([0, 0, 0, 0])
})

test('the room drains in order under random arrivals and departures', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ at: fc.integer({ min: 0, max: 50 }), leave: fc.boolean() }), { maxLength: 40 }),
      (steps) => {
        const room = createRoom()
        const left: { id: string; at: number; order: number }[] = []
        for (const [order, { at, leave }] of steps.entries()) {
          const id = `r${order}`
          room.add({ job: testJob({ id, arrivedAt: at }), attempt: 1, excluded: [] }, 'waiting', 'busy')
          if (leave) room.remove(id)
          else left.push({ id, at, order })
        }
        const drained: string[] = []
        for (let head = room.heads()[0]; head !== undefined; head = room.heads()[0]) {
          drained.push(head.job.id)
          room.remove(head.job.id)
        }
        expect(drained).toEqual(left.sort((a, b) => a.at - b.at || a.order - b.order).map(({ id }) => id))
      },
    ),
  )
})
