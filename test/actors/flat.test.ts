import { expect, test } from 'bun:test'
import { type AnyActorRef, assign, createActor, createMachine } from 'xstate'
import { type Arc, type Chart, flat } from '../../actors/flat'
import { indexScheduler } from '../../actors/spawn'
import { seededRandom } from '../../src/sim/seeded-random'
import { VirtualClock } from '../../src/sim/virtual-clock'

interface Counted {
  count: number
  trace: string[]
}
type Random = ReturnType<typeof seededRandom>

const GUARDS: Readonly<Record<string, (context: Counted) => boolean>> = {
  even: ({ count }) => count % 2 === 0,
  third: ({ count }) => count % 3 === 0,
  small: ({ count }) => count % 11 < 5,
}
const ACTIONS: Readonly<Record<string, (count: number) => number>> = {
  one: (count) => count + 1,
  triple: (count) => (count * 3 + 1) % 1009,
  note: (count) => count,
}
const DELAYS: Readonly<Record<string, (context: Counted) => number>> = {
  short: () => 7,
  long: () => 40,
  counted: ({ count }) => 1 + (count % 5) * 9,
}
const EVENTS = ['go', 'turn', 'stop', 'family.one', 'family.two']

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T
const maybe = <T>(random: Random, chance: number, make: () => T): T | undefined =>
  random.next() < chance ? make() : undefined

const randomArc = (random: Random, states: readonly string[]): Arc => {
  const target = maybe(random, 0.7, () => pick(random, states))
  const guard = maybe(random, 0.5, () => pick(random, Object.keys(GUARDS)))
  const actions = maybe(random, 0.7, () => [pick(random, Object.keys(ACTIONS)), pick(random, Object.keys(ACTIONS))])
  const reenter = maybe(random, 0.2, () => true as const)
  return {
    ...(target && { target }),
    ...(guard && { guard }),
    ...(actions && { actions }),
    ...(reenter && { reenter }),
  }
}

const randomArcs = (random: Random, states: readonly string[]): Arc | Arc[] =>
  random.next() < 0.5
    ? randomArc(random, states)
    : [randomArc(random, states), randomArc(random, states), randomArc(random, states)]

const randomChart = (random: Random): Chart => {
  const names = Array.from({ length: 3 + Math.floor(random.next() * 4) }, (_, i) => `s${i}`)
  const table = (from: readonly string[], chance: number) =>
    Object.fromEntries(from.filter(() => random.next() < chance).map((name) => [name, randomArcs(random, names)]))
  return {
    id: 'random',
    // The last one may be final; a chart that is over before it begins is none.
    initial: pick(random, names.slice(0, -1)),
    on: table(EVENTS, 0.2),
    states: Object.fromEntries(
      names.map((name, i) => [
        name,
        i === names.length - 1 && random.next() < 0.5
          ? { final: true as const, entry: ['note'] }
          : {
              on: table(EVENTS, 0.5),
              after: table(Object.keys(DELAYS), 0.3),
              ...(random.next() < 0.4 ? { entry: ['one', 'note'] } : {}),
            },
      ]),
    ),
  }
}

/** The same chart as an XState machine. */
const asMachine = (chart: Chart) => {
  const arcs = (of: Arc | readonly Arc[], fromRoot: boolean) =>
    (Array.isArray(of) ? of : [of as Arc]).map(({ target, ...rest }) => ({
      ...rest,
      ...(target === undefined ? {} : { target: fromRoot ? `.${target}` : target }),
    }))
  const table = (on: Chart['on'], fromRoot = false) =>
    Object.fromEntries(Object.entries(on ?? {}).map(([type, of]) => [type, arcs(of, fromRoot)]))
  return createMachine({
    id: chart.id,
    initial: chart.initial,
    context: { count: 0, trace: [] },
    on: table(chart.on, true),
    states: Object.fromEntries(
      Object.entries(chart.states).map(([name, { on, after, entry, final }]) => [
        name,
        { on: table(on), after: table(after), entry: entry ?? [], ...(final ? { type: 'final' } : {}) },
      ]),
    ),
  } as never).provide({
    guards: Object.fromEntries(
      Object.entries(GUARDS).map(([name, holds]) => [name, ({ context }: { context: Counted }) => holds(context)]),
    ),
    delays: Object.fromEntries(
      Object.entries(DELAYS).map(([name, ms]) => [name, ({ context }: { context: Counted }) => ms(context)]),
    ),
    actions: Object.fromEntries(
      Object.entries(ACTIONS).map(([name, next]) => [
        name,
        assign(({ context }: { context: Counted }) => ({
          count: next(context.count),
          trace: [...context.trace, name],
        })),
      ]),
    ),
  } as never)
}

const asFlat = (chart: Chart) =>
  flat<Counted, { type: string }, undefined>(chart, {
    context: () => ({ count: 0, trace: [] }),
    guards: GUARDS,
    delays: DELAYS,
    actions: Object.fromEntries(
      Object.entries(ACTIONS).map(([name, next]) => [
        name,
        (context: Counted) => {
          context.count = next(context.count)
          context.trace.push(name)
        },
      ]),
    ),
  })

const start = (logic: never) => {
  const clock = new VirtualClock(0)
  const actor = createActor(logic, { clock } as never) as unknown as AnyActorRef
  indexScheduler(actor)
  actor.start()
  const look = () => {
    const { value, status, context } = actor.getSnapshot() as { value: string; status: string; context: Counted }
    return { value, status, count: context.count, trace: context.trace.join(' ') }
  }
  return { actor, clock, look }
}

test('a flat chart behaves as XState does: 10 000 random events over random charts, guards and deadlines included', async () => {
  const seed = Number(process.env.FLAT_SEED ?? Math.floor(Math.random() * 1e9))
  console.log(`flat against XState, seed ${seed}`)
  const random = seededRandom(seed)
  let events = 0
  let moved = 0
  while (events < 10_000) {
    const chart = randomChart(random)
    const ours = start(asFlat(chart) as never)
    const theirs = start(asMachine(chart) as never)
    const describe = () => `seed ${seed}, chart ${JSON.stringify(chart)}`
    expect(ours.look(), describe()).toEqual(theirs.look())
    for (let i = 0; i < 60 && ours.look().status === 'active'; i++) {
      const before = ours.look().value
      if (random.next() < 0.3) {
        const ms = Math.floor(random.next() * 30)
        await Promise.all([ours.clock.advance(ms), theirs.clock.advance(ms)])
      } else {
        const type = pick(random, EVENTS)
        ours.actor.send({ type })
        theirs.actor.send({ type })
      }
      events += 1
      if (ours.look().value !== before) moved += 1
      expect(ours.look(), describe()).toEqual(theirs.look())
    }
  }
  // Charts that never moved would compare nothing.
  expect(moved).toBeGreaterThan(1_000)
}, 60_000)

const effectChart = {
  id: 'effects',
  initial: 'idle',
  states: {
    idle: { on: { go: { target: 'first' } } },
    first: { effects: ['work'], on: { next: { target: 'second' }, fail: { actions: ['explode'] } } },
    second: { effects: ['work'], on: { back: { target: 'idle' } } },
  },
} as const satisfies Chart

const effectActor = () => {
  const seen: string[] = []
  const logic = flat<object, { type: string }, undefined>(effectChart, {
    context: () => ({}),
    actions: {
      explode: () => {
        throw new Error('boom')
      },
    },
    effects: {
      work: (_context, _api, signal) => {
        seen.push('started')
        signal.addEventListener('abort', () => seen.push('aborted'))
      },
    },
  })
  const actor = createActor(logic, {} as never) as unknown as AnyActorRef
  actor.subscribe({ error: () => seen.push('error') })
  actor.start()
  return { actor, seen }
}

test('an effect goes on into a state that names it too, and is aborted on leaving', () => {
  const { actor, seen } = effectActor()

  actor.send({ type: 'go' })
  actor.send({ type: 'next' })
  expect(seen).toEqual(['started'])
  actor.send({ type: 'back' })
  expect(seen).toEqual(['started', 'aborted'])
})

test('an effect is aborted when an action throws, and the actor ends in error (BL-Y03)', () => {
  const { actor, seen } = effectActor()

  actor.send({ type: 'go' })
  actor.send({ type: 'fail' })

  expect(seen).toEqual(['started', 'aborted', 'error'])
  expect(actor.getSnapshot().status).toBe('error')
})

test('a name that the chart uses and nobody provides is refused when the logic is made', () => {
  const chart: Chart = { id: 'loud', initial: 'a', states: { a: { on: { go: { actions: ['missing'] } } } } }

  expect(() => flat(chart, { context: () => ({}) })).toThrow(
    "loud: action 'missing' is named in the chart but not provided",
  )
  expect(() => flat({ ...chart, initial: 'b', states: { a: {} } }, { context: () => ({}) })).toThrow(
    "loud: no initial state 'b'",
  )
})
