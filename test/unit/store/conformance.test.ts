import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DecisionRecord } from '../../../src/domain/record'
import { openMemoryStore } from '../../../src/store/memory'
import { openStore } from '../../../src/store/sqlite'
import type { Store } from '../../../src/store/store'
import { outcome, record as recordWith } from '../observe/builders'
import { manualClock } from './manual-clock'

const HOUR = 3_600_000
const directory = mkdtempSync(join(tmpdir(), 'fleet-store-'))
afterAll(() => rmSync(directory, { recursive: true }))

type Open = (clock: ReturnType<typeof manualClock>) => Store
const kinds: Readonly<Record<string, Open>> = {
  memory: (clock) => openMemoryStore({ keepTracesMs: HOUR, clock }),
  'sqlite in memory': (clock) => openStore({ path: ':memory:', keepTracesMs: HOUR, clock }),
  'sqlite file': (clock) => openStore({ path: join(directory, `${Math.random()}.db`), keepTracesMs: HOUR, clock }),
}

for (const [kind, open] of Object.entries(kinds)) {
  describe(`store: ${kind}`, () => {
    const setUp = () => {
      const clock = manualClock()
      const store = open(clock)
      const settledRecord = (id: string, over: Partial<DecisionRecord> = {}): DecisionRecord =>
        recordWith({ id, at: clock.now(), outcome: { ...outcome(), totalMs: 9 }, ...over })
      /** Long enough for whatever the store does behind its back to be done. */
      const rest = () => clock.advance(1_000)
      return { clock, store, settledRecord, rest }
    }

    test('a record is readable at once and after it was written', () => {
      const { store, settledRecord, rest } = setUp()
      const saved = settledRecord('req_1')
      store.save(saved)

      expect(store.get('req_1')).toEqual(saved)
      rest()
      expect(store.get('req_1')).toEqual(saved)
      expect(store.get('req_2')).toBeUndefined()
      store.close()
    })

    test('saving an id again replaces it', () => {
      const { store, settledRecord, rest } = setUp()
      store.save(settledRecord('req_1'))
      rest()
      store.save(settledRecord('req_1', { version: '9' }))

      expect(store.list({ limit: 10 }).map(({ version }) => version)).toEqual(['9'])
      rest()
      expect(store.list({ limit: 10 }).map(({ version }) => version)).toEqual(['9'])
      store.close()
    })

    test('lists are newest first, across written and unwritten ones, and bounded', () => {
      const { clock, store, settledRecord } = setUp()
      for (let i = 0; i < 20; i++) {
        store.save(settledRecord(`req_${i}`))
        clock.advance(60)
      }

      expect(store.list({ limit: 3 }).map(({ id }) => id)).toEqual(['req_19', 'req_18', 'req_17'])
      expect(store.list({ limit: 1_000_000 })).toHaveLength(20)
      expect(store.last()?.id).toBe('req_19')
      store.close()
    })

    test('each filter alone and all together', () => {
      const { store, settledRecord, rest } = setUp()
      const ran = (id: string, model: string, node: string, end: 'completed' | 'failed', client?: string) =>
        store.save(
          settledRecord(id, {
            outcome: { ...outcome({ model, node, end }), totalMs: 1 },
            asked: { ...settledRecord(id).asked, ...(client !== undefined && { clientRequestId: client }) },
          }),
        )
      ran('a', 'Qwen3:8B', 'rig', 'completed', 'c1')
      ran('b', 'llava:latest', 'rig', 'failed')
      ran('c', 'llava', 'box', 'completed')
      const ids = (filter: object) =>
        store
          .list({ limit: 10, ...filter })
          .map(({ id }) => id)
          .sort()

      for (const written of [false, true]) {
        if (written) rest()
        expect(ids({ model: 'qwen3:8b' })).toEqual(['a'])
        expect(ids({ model: 'LLaVA' })).toEqual(['b', 'c'])
        expect(ids({ node: 'rig' })).toEqual(['a', 'b'])
        expect(ids({ end: 'failed' })).toEqual(['b'])
        expect(ids({ clientRequestId: 'c1' })).toEqual(['a'])
        expect(ids({ model: 'llava', node: 'box', end: 'completed' })).toEqual(['c'])
        expect(ids({ node: "x' OR 1=1 --" })).toEqual([])
      }
      store.close()
    })

    test('records go when they are too old, the others stay', () => {
      const { clock, store, settledRecord } = setUp()
      for (let i = 0; i < 1_000; i++) store.save(settledRecord(`old_${i}`))
      clock.advance(HOUR - 1_000)
      store.save(settledRecord('young'))
      clock.advance(120_000)

      expect(store.list({ limit: 1_000 }).map(({ id }) => id)).toEqual(['young'])
      expect(store.get('old_7')).toBeUndefined()
      store.close()
    })

    test('what was learned comes back, the latest of each, least recently saved first', () => {
      const { clock, store, rest } = setUp()
      const pair = (node: string, services: number) => ({ node, model: 'm', serviceMs: 5.5, services, loads: 0 })
      const speed = { tokens: 400.5, ms: 1_000, samples: 3 }
      const detail = {
        window: { size: 900, ranks: [1, 2.5, 7] },
        prefill: speed,
        decode: { '1': speed, '4': speed },
        parallelism: { slots: 2, tryAfter: 40 },
      }
      const mean = (samples: number) => ({ node: 'rig', latencyMs: 3.5, samples })
      const ratio = { model: 'm', bytes: 900, tokens: 250.5, samples: 4 }
      store.learned.save({ pairs: [pair('rig', 1)], rates: [{ node: 'rig', gbPerSecond: 1.5, loads: 1 }] })
      rest()
      store.learned.save({ pairs: [{ ...pair('box', 1), ...detail }], means: [mean(1)] })
      clock.advance(1)
      rest()
      store.learned.save({ pairs: [pair('rig', 2)], ratios: [ratio] })
      store.learned.save({ means: [{ ...mean(2), tokensPerSecond: 9.25 }] })
      rest()

      expect(store.learned.load()).toEqual({
        pairs: [{ ...pair('box', 1), ...detail }, pair('rig', 2)],
        rates: [{ node: 'rig', gbPerSecond: 1.5, loads: 1 }],
        means: [{ ...mean(2), tokensPerSecond: 9.25 }],
        ratios: [ratio],
      })
      store.learned.save({ pairs: [pair('rig', 3)] })
      store.learned.forget('rig')
      rest()
      expect(store.learned.load()).toEqual({
        pairs: [{ ...pair('box', 1), ...detail }],
        rates: [],
        means: [],
        ratios: [ratio],
      })
      store.close()
    })

    test('identities come back, the latest of each, also before and after they were written', () => {
      const { store, rest } = setUp()
      const lineage = (key: string, digest: string) => ({
        key,
        models: [{ number: 1, digest }],
        merged: [{ number: 2, into: 1 }],
        holders: { rig: { digest, isListed: true } },
      })
      store.identities.save(lineage('m:8b', 'h1'))
      store.identities.save(lineage('a', 'h1'))
      rest()
      store.identities.save(lineage('m:8b', 'h2'))
      rest()

      const load = () => store.identities.load().toSorted((a, b) => (a.key < b.key ? -1 : 1))
      expect(load()).toEqual([lineage('a', 'h1'), lineage('m:8b', 'h2')])
      store.close()
    })

    test('videos come back, what became of each, the oldest first, without those that were forgotten', () => {
      const { store, rest } = setUp()
      const video = (id: string, begunAt: number, status = 'queued') => ({
        id,
        begunAt,
        node: 'rig',
        at: { id: 'v1', dialect: 'openai', model: 'm' },
        key: 'me',
        state: { status },
      })
      store.videos.save(video('a', 1))
      store.videos.save(video('b', 2))
      store.videos.save(video('c', 3))
      rest()
      store.videos.save(video('a', 1, 'completed'))
      store.videos.forget('b')
      rest()

      expect(store.videos.load()).toEqual([video('a', 1, 'completed'), video('c', 3)])
      store.close()
    })

    test('paused nodes come back, the last word on each, also before and after it was written', () => {
      const { store, rest } = setUp()
      const paused = (node: string) => ({ node, admission: 'paused', isConfigured: true, at: 5 }) as const
      const load = () => store.admissions.load().toSorted((a, b) => (a.node < b.node ? -1 : 1))
      for (const node of ['a', 'b', 'c']) store.admissions.save(paused(node))
      store.admissions.forget('b')
      rest()
      expect(load()).toEqual([paused('a'), paused('c')])

      store.admissions.forget('a')
      store.admissions.save({ ...paused('c'), admission: 'draining', isConfigured: false })
      rest()
      expect(load()).toEqual([{ node: 'c', admission: 'draining', isConfigured: false, at: 5 }])
      store.close()
    })

    test('closing leaves no timer behind', () => {
      const { clock, store, settledRecord } = setUp()
      store.save(settledRecord('req_1'))
      store.close()

      expect(clock.pending()).toBe(0)
    })
  })
}
