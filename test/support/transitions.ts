import type { AnyActorRef, AnyStateMachine, AnyStateNode } from 'xstate'
import type { Arc, Chart, Taken } from '../../actors/flat'

/** Transitions of one machine by name: `state event[index]`, `* event[index]` for those of the whole chart. */
export interface Walk {
  readonly all: ReadonlySet<string>
  readonly taken: Set<string>
  /** One that was seen by its effect, since a transition whose action throws is not reported. */
  take(name: string): void
}

const list = (arcs: Arc | readonly Arc[]): readonly Arc[] => (Array.isArray(arcs) ? arcs : [arcs as Arc])

const ofTable = (source: string, table: Chart['on'], prefix = ''): [string, Arc][] =>
  Object.entries(table ?? {}).flatMap(([event, arcs]) =>
    list(arcs).map((arc, index): [string, Arc] => [`${source} ${prefix}${event}[${index}]`, arc]),
  )

const ofState = (chart: Chart, state: string): [string, Arc][] => [
  ...ofTable(state, chart.states[state]?.on),
  ...ofTable(state, chart.states[state]?.after, 'after '),
]

const ofChart = (chart: Chart): [string, Arc][] => [
  ...ofTable('*', chart.on),
  ...Object.keys(chart.states).flatMap((state) => ofState(chart, state)),
]

const ofNode = (node: AnyStateNode): string[] => [
  ...[...node.transitions].flatMap(([event, arcs]) => arcs.map((_, index) => `${node.id} ${event}[${index}]`)),
  ...Object.values(node.states).flatMap(ofNode),
]

interface Definition {
  readonly source: AnyStateNode
  readonly eventType: string
}

const isTaken = (one: Taken | Definition): one is Taken => 'declared' in one

/** Charts share declarations between states and events, so the event tells which of them it was. */
const nameOf = (chart: Chart | undefined, one: Taken | Definition, type: string): string | undefined => {
  if (isTaken(one)) {
    if (chart === undefined) return undefined
    const named = [...ofState(chart, one.source), ...ofTable('*', chart.on)].filter(([, arc]) => arc === one.declared)
    return (named.find(([name]) => name.includes(` ${type}[`)) ?? named[0])?.[0]
  }
  const { source, eventType } = one
  const index = source.transitions.get(eventType)?.indexOf(one as never) ?? -1
  return index < 0 ? undefined : `${source.id} ${eventType}[${index}]`
}

const walkOf = (all: readonly string[]): Walk => {
  const taken = new Set<string>()
  const names = new Set(all)
  return {
    all: names,
    taken,
    take: (name) => {
      if (!names.has(name)) throw new Error(`there is no transition '${name}'`)
      taken.add(name)
    },
  }
}

export const walkOfChart = (chart: Chart): Walk => walkOf(ofChart(chart).map(([name]) => name))
export const walkOfMachine = (machine: AnyStateMachine): Walk => walkOf(ofNode(machine.root))

/** Notes what every machine of the system takes from now on. */
export const watch = (root: AnyActorRef, walks: Readonly<Record<string, Walk>>): void => {
  root.system.inspect((event) => {
    if (event.type !== '@xstate.microstep') return
    const { chart, id } = (event.actorRef as unknown as { logic: { chart?: Chart; id?: string } }).logic
    const walk = walks[chart?.id ?? id ?? '']
    if (walk === undefined) return
    for (const one of event._transitions as unknown as (Taken | Definition)[]) {
      const name = nameOf(chart, one, event.event.type)
      if (name !== undefined && walk.all.has(name)) walk.taken.add(name)
    }
  })
}

/** Prints the machine and its transitions; returns those that nobody took. */
export const missing = (machine: string, { all, taken }: Walk): string[] => {
  const lines = [...all].map((name) => `  ${taken.has(name) ? 'taken' : 'NOT  '} ${name}`)
  console.log(`${machine}: ${all.size} transitions, ${taken.size} taken\n${lines.join('\n')}`)
  return [...all].filter((name) => !taken.has(name))
}
