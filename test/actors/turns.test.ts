import { describe, expect, test } from 'bun:test'
import type { NodeReport, ResidentModel } from '../../src/domain/node'
import { host } from '../support/host'

const names = ['a', 'b', 'c']

/** Memory for one model of three; a load takes 20 s, an answer 2 s. */
const LOAD_S = 20
const ANSWER_S = 2
const report = (resident: readonly ResidentModel[], more: Partial<NodeReport> = {}): NodeReport => ({
  models: names.map((name) => ({ name, sizeGb: 5 })),
  resident,
  canLoad: true,
  canUnload: true,
  memoryGb: 8,
  ...more,
})
const policies = ['residency', 'warmth', 'steady']
/** The engine that loads what a request asks for, and pushes out what it likes for it. */
const byRequest: Partial<NodeReport> = { canLoad: false, loadsOnRequest: true, memoryGb: undefined as never }
const ready = (name: string, slots: number): ResidentModel => ({ name, state: 'ready', memoryGb: 5, slots })

interface Setting {
  readonly use?: string
  readonly slots?: number
  readonly loadS?: number
  readonly answerS?: number
  readonly first?: readonly ResidentModel[]
  readonly more?: Partial<NodeReport>
}

/** One machine that answers by itself, second by second. */
const machine = ({
  use = 'residency',
  slots = 1,
  loadS = LOAD_S,
  answerS = ANSWER_S,
  first = [],
  more = {},
}: Setting = {}) => {
  const fleet = host({ box: report(first, more) }, { describe: () => ({ maxConcurrency: slots }), policy: { use } })
  const { gateway, clock } = fleet
  const loads: { readonly model: string; readonly atS: number }[] = []
  const begun = new Map<object, number>()
  let second = 0
  let ends = 0

  const step = async (answers: (model: string, atS: number) => boolean = () => true): Promise<void> => {
    await clock.advance(1_000)
    second += 1
    const [load] = gateway.loads
    if (load !== undefined && ends === 0) {
      loads.push({ model: load.model, atS: second })
      ends = second + loadS
    } else if (load !== undefined && second >= ends) {
      ends = 0
      gateway.loads.shift()
      gateway.reports.set('box', report([ready(load.model, slots)], more))
      load.done()
    }
    for (const running of [...gateway.running]) {
      const since = begun.get(running) ?? second
      begun.set(running, since)
      if (second - since < answerS || !answers(running.call.model, second)) continue
      running.start()
      running.finish()
    }
    await clock.advance(0)
  }
  const ask = (model: string, change: object = {}) =>
    fleet.submit({ asked: model, models: [model], arrivedAt: clock.now(), ...change })
  return { fleet, loads, step, ask }
}

const startsOf = ({ fleet }: ReturnType<typeof machine>, model: string): number[] =>
  fleet
    .of('request.phase')
    .filter((fact) => fact.phase === 'prefill' && fact.model === model)
    .map(({ at }) => (at - 1_800_000_000_000) / 1_000)

const ends = ({ fleet }: ReturnType<typeof machine>): string[] => [
  ...new Set(fleet.settled().map(({ outcome }) => outcome.end)),
]

test.each(policies)('a model that is always wanted does not keep another one out for ever: %s', async (use) => {
  const box = machine({ use, slots: 4, first: [ready('a', 4)] })
  await box.fleet.ready()
  for (let second = 0; second < 300; second++) {
    box.ask('a')
    if (second === 5) box.ask('b')
    await box.step()
  }

  const [b] = startsOf(box, 'b')
  // Its time to wait, the end of what runs, and its load.
  expect(b).toBeLessThan(5 + 15 + ANSWER_S + LOAD_S + 3)
  expect(ends(box)).toEqual(['completed'])
  expect(startsOf(box, 'a').length).toBeGreaterThan(290)
  expect(box.fleet.of('turn.began')).toMatchObject([{ node: 'box', model: 'b', waitedMs: 15_000 }])
})

test.each(policies)(
  'requests in any order make as many loads as there are models, not as many as there are changes: %s',
  async (use) => {
    const box = machine({ use })
    await box.fleet.ready()
    for (const model of 'abaacabc') {
      box.ask(model)
      await box.fleet.clock.advance(100)
    }
    for (let second = 0; second < 120; second++) await box.step()

    expect(box.loads.map(({ model }) => model)).toEqual(['a', 'b', 'c'])
    expect(box.fleet.settled()).toHaveLength(8)
    expect(ends(box)).toEqual(['completed'])
    box.fleet.expectIdle()
  },
)

test('of two models that are wanted all the time each has its turns, and half of the time is for answers', async () => {
  const box = machine({ slots: 4 })
  await box.fleet.ready()
  const seconds = 600
  for (let second = 0; second < seconds; second++) {
    box.ask(second % 2 === 0 ? 'a' : 'b')
    await box.step()
  }

  expect(box.loads.length).toBeGreaterThan(6)
  expect(box.loads.length * LOAD_S).toBeLessThanOrEqual(seconds / 2 + LOAD_S)
  for (const model of ['a', 'b']) {
    const starts = startsOf(box, model)
    const pauses = starts.map((at, index) => at - (starts[index - 1] ?? 0))
    expect(Math.max(...pauses)).toBeLessThan(4 * LOAD_S + 20)
  }
  expect(ends(box)).toEqual(['completed'])
})

test.each(policies)('of three models that are wanted all the time none is left out: %s', async (use) => {
  const box = machine({ use, slots: 4, more: { maxResident: 1, memoryGb: undefined as never } })
  await box.fleet.ready()
  for (let second = 0; second < 600; second++) {
    if (second % 2 === 0) box.ask('aaaabc'[(second / 2) % 6] as string)
    await box.step()
  }

  for (const model of names) {
    const starts = startsOf(box, model)
    const pauses = [...starts, 600].map((at, index) => at - (starts[index - 1] ?? 0))
    expect(Math.max(...pauses)).toBeLessThan(200)
  }
})

test('whoever waits for memory that is only in use is not turned away, however long a load takes', async () => {
  const box = machine({ slots: 4, loadS: 90, first: [ready('a', 4)] })
  await box.fleet.ready()
  for (let second = 0; second < 240; second++) {
    if (second < 60) box.ask('a')
    if (second === 5) box.ask('b')
    await box.step()
  }

  expect(box.fleet.settled()).toHaveLength(61)
  expect(ends(box)).toEqual(['completed'])
})

test('whoever waits for memory that only others use, past us, is held for its time as ever', async () => {
  const box = machine({ slots: 4, first: [{ ...ready('a', 4), running: 1 }] })
  await box.fleet.ready()
  box.ask('b')
  for (let second = 0; second < 40; second++) await box.step()

  expect(box.fleet.settled()).toMatchObject([{ outcome: { end: 'expired', code: 'no_capacity' } }])
})

describe('a turn', () => {
  test('lets older and more urgent requests through', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    const at = box.fleet.clock.now()
    box.ask('a')
    box.ask('b')
    for (let second = 0; second < 17; second++) await box.step(() => false)
    expect(box.fleet.of('turn.began')).toHaveLength(1)

    box.ask('a')
    box.ask('a', { priority: 'critical' })
    box.ask('a', { arrivedAt: at - 1 })
    await box.step(() => false)

    expect(startsOf(box, 'a')).toHaveLength(3)
  })

  test('goes from batch work to a request that goes before it', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    for (let second = 0; second < 90; second++) {
      box.ask('a')
      if (second === 0) box.ask('b', { priority: 'batch' })
      if (second === 10) box.ask('c')
      await box.step()
    }

    expect(box.fleet.of('turn.began').map(({ model }) => model)).toEqual(['b', 'c'])
    expect(startsOf(box, 'c')[0]).toBeLessThan(10 + 15 + ANSWER_S + LOAD_S + 3)
  })

  test('is given up after two minutes where an answer does not end, and comes again', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    box.ask('a')
    box.ask('b')
    const never = () => false
    for (let second = 0; second < 20; second++) await box.step(never)
    box.ask('a')
    for (let second = 20; second < 130; second++) await box.step(never)
    expect(startsOf(box, 'a')).toHaveLength(1)

    for (let second = 130; second < 140; second++) await box.step(never)
    expect(startsOf(box, 'a')).toHaveLength(2)
    for (let second = 140; second < 270; second++) await box.step(never)
    expect(box.fleet.of('turn.began')).toHaveLength(2)
    for (let second = 270; second < 300; second++) await box.step()
    expect(startsOf(box, 'b')).toHaveLength(1)
  })

  test('is longer after one that came to nothing, so that long answers keep nobody out for ever', async () => {
    const box = machine({ slots: 8, answerS: 170, first: [ready('a', 8)] })
    await box.fleet.ready()
    for (let second = 0; second < 1_500; second++) {
      if (second % 40 === 0) box.ask('a')
      if (second === 5) box.ask('b')
      await box.step()
    }

    expect(startsOf(box, 'b')[0]).toBeLessThan(5 + 15 + 120 + 120 + 170 + LOAD_S + 3)
  })

  test('ends with the client that waited for it', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    box.ask('a')
    const { leave } = box.ask('b')
    for (let second = 0; second < 17; second++) await box.step(() => false)
    box.ask('a')
    await box.step(() => false)
    expect(startsOf(box, 'a')).toHaveLength(1)

    leave()
    await box.step(() => false)
    expect(startsOf(box, 'a')).toHaveLength(2)
  })

  test('is not for what others send there', async () => {
    const box = machine({ slots: 4, first: [{ ...ready('a', 4), running: 1 }] })
    await box.fleet.ready()
    box.ask('b')
    for (let second = 0; second < 20; second++) await box.step()

    expect(box.fleet.of('turn.began')).toEqual([])
  })

  test('says in the record of who waits whose turn it is', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    box.ask('a')
    box.ask('b')
    for (let second = 0; second < 17; second++) await box.step(() => false)
    const { id } = box.ask('a').job
    await box.step(() => false)

    const placed = box.fleet.of('request.placed').filter(({ request }) => request === id)
    expect(placed).toMatchObject([{ decision: { kind: 'wait' }, verdicts: [{ terms: { turn_of: 'b' } }] }])
  })

  test.each(policies)('is for engines too that load what a request asks for: %s', async (use) => {
    const box = machine({ use, slots: 4, first: [ready('a', 4)], more: byRequest })
    await box.fleet.ready()
    for (let second = 0; second < 60; second++) {
      box.ask('a')
      if (second === 5) box.ask('b')
      await box.step()
    }

    expect(startsOf(box, 'b')[0]).toBeLessThan(5 + 15 + ANSWER_S + 3)
  })

  test('is not in the way of its own request once the model came into memory by other hands', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    box.ask('a')
    box.ask('b')
    for (let second = 0; second < 17; second++) await box.step(() => false)
    expect(box.fleet.of('turn.began')).toHaveLength(1)

    box.fleet.gateway.reports.set('box', report([ready('b', 4)]))
    for (let second = 17; second < 21; second++) await box.step(() => false)

    expect(startsOf(box, 'b')).toHaveLength(1)
  })

  test('BL-M06 is not for pictures or sound that may not push out a model in use anyway', async () => {
    const box = machine({ slots: 4, first: [ready('a', 4)] })
    await box.fleet.ready()
    for (let second = 0; second < 60; second++) {
      box.ask('a')
      if (second === 5) box.ask('b', { needs: ['transcription'] })
      await box.step()
    }

    expect(box.fleet.of('turn.began')).toEqual([])
    expect(startsOf(box, 'a').length).toBeGreaterThan(55)
    expect(box.fleet.settled()).toContainEqual(
      expect.objectContaining({ outcome: expect.objectContaining({ code: 'no_capacity' }) }),
    )
  })
})

test.each(policies)(
  'an engine that loads what a request asks for is not asked while it answers, nor while it loads: %s',
  async (use) => {
    const box = machine({ use, slots: 4, first: [ready('a', 4)], more: byRequest })
    const models = () => box.fleet.gateway.running.map(({ call }) => call.model)
    await box.fleet.ready()
    box.ask('a')
    await box.step(() => false)
    box.ask('b')
    for (let second = 0; second < 5; second++) await box.step(() => false)
    expect(models()).toEqual(['a'])

    await box.step()
    expect(models()).toEqual(['b'])
    box.ask('a')
    await box.step(() => false)
    expect(models()).toEqual(['b'])

    box.fleet.gateway.reports.set('box', report([ready('b', 4)], byRequest))
    for (let second = 0; second < 60; second++) await box.step()
    expect(ends(box)).toEqual(['completed'])
    expect(box.fleet.settled()).toHaveLength(3)
    box.fleet.expectIdle()
  },
)
