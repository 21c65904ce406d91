/** Flat statecharts as plain data, and the tables that are made of them once: see `flat.ts`. */
import type { EventObject } from 'xstate'
import type { Api } from './flat-api'

export interface Arc {
  readonly target?: string
  readonly guard?: string
  readonly actions?: readonly string[]
  /** A transition to the current state restarts its deadlines and entry actions only when it says so. */
  readonly reenter?: true
}

export interface StateChart {
  readonly on?: Readonly<Record<string, Arc | readonly Arc[]>>
  /** Deadlines by name; each is armed on entry and dropped on exit. */
  readonly after?: Readonly<Record<string, Arc | readonly Arc[]>>
  readonly entry?: readonly string[]
  /** Work that runs while in this state. It goes on without a break into a state that names it too. */
  readonly effects?: readonly string[]
  readonly final?: true
}

/** A chart is plain data: the inspector draws it, tests walk it. */
export interface Chart {
  readonly id: string
  readonly initial: string
  /** Transitions from any state, after the state's own. */
  readonly on?: Readonly<Record<string, Arc | readonly Arc[]>>
  readonly states: Readonly<Record<string, StateChart>>
}

export interface Behaviour<C extends object, E extends EventObject, I> {
  readonly context: (input: I, api: Api<E>) => C
  readonly guards?: Readonly<Record<string, (context: C, event: E) => boolean>>
  /** Actions change the context in place and send through the api. */
  readonly actions?: Readonly<Record<string, (context: C, event: E, api: Api<E>) => void>>
  /** Milliseconds; `Infinity` arms nothing. */
  readonly delays?: Readonly<Record<string, number | ((context: C) => number)>>
  /** Started after the snapshot is set; the signal aborts when the state is left, also by an error or a stop. */
  readonly effects?: Readonly<Record<string, (context: C, api: Api<E>, signal: AbortSignal) => void>>
  readonly output?: (context: C) => unknown
}

export interface CompiledArc<C, E extends EventObject> {
  readonly target: string | undefined
  readonly reenter: boolean
  readonly guard: ((context: C, event: E) => boolean) | undefined
  readonly actions: readonly ((context: C, event: E, api: Api<E>) => void)[]
  /** The declaration that it comes from, which inspection names. */
  readonly declared: Arc
}

export interface CompiledState<C, E extends EventObject> {
  readonly arcs: ReadonlyMap<string, readonly CompiledArc<C, E>[]>
  /** Descriptors that end in `.*`, by prefix; looked at only when nothing else matches. */
  readonly families: readonly (readonly [prefix: string, arcs: readonly CompiledArc<C, E>[]])[]
  readonly entry: readonly ((context: C, event: E, api: Api<E>) => void)[]
  readonly timers: readonly {
    readonly id: string
    readonly event: EventObject
    readonly ms: number | ((context: C) => number)
  }[]
  readonly effects: readonly string[]
  readonly final: boolean
}

const list = (arcs: Arc | readonly Arc[]): readonly Arc[] => (Array.isArray(arcs) ? arcs : [arcs as Arc])

/** The event type of a deadline, spelled as XState spells it. */
const afterType = (chart: Chart, state: string, delay: string): string => `xstate.after.${delay}.${chart.id}.${state}`

const named = <T>(table: Readonly<Record<string, T>> | undefined, kind: string, name: string, chart: Chart): T => {
  const found = table?.[name]
  if (found === undefined) throw new Error(`${chart.id}: ${kind} '${name}' is named in the chart but not provided`)
  return found
}

/** Throws at once on a name that the chart uses and nobody provides. */
export const compile = <C extends object, E extends EventObject, I>(
  chart: Chart,
  behaviour: Behaviour<C, E, I>,
): ReadonlyMap<string, CompiledState<C, E>> => {
  const arc = (declared: Arc, fromAnywhere = false): CompiledArc<C, E> => {
    const { target, guard, actions = [], reenter } = declared
    if (target !== undefined && !(target in chart.states)) throw new Error(`${chart.id}: no state '${target}'`)
    return {
      target,
      // As in XState, a transition of the whole chart leaves and enters its target even from the target itself.
      reenter: reenter === true || (fromAnywhere && target !== undefined),
      guard: guard === undefined ? undefined : named(behaviour.guards, 'guard', guard, chart),
      actions: actions.map((name) => named(behaviour.actions, 'action', name, chart)),
      declared,
    }
  }
  const compiled = new Map<string, CompiledState<C, E>>()
  for (const [name, state] of Object.entries(chart.states)) {
    const arcs = new Map<string, CompiledArc<C, E>[]>()
    const add = (type: string, of: Arc | readonly Arc[], fromAnywhere = false) =>
      arcs.set(type, [...(arcs.get(type) ?? []), ...list(of).map((one) => arc(one, fromAnywhere))])
    for (const [type, of] of Object.entries(state.on ?? {})) add(type, of)
    for (const [delay, of] of Object.entries(state.after ?? {})) add(afterType(chart, name, delay), of)
    if (!state.final) for (const [type, of] of Object.entries(chart.on ?? {})) add(type, of, true)
    for (const effect of state.effects ?? []) named(behaviour.effects, 'effect', effect, chart)
    compiled.set(name, {
      arcs,
      families: [...arcs].flatMap(([type, of]) => (type.endsWith('.*') ? [[type.slice(0, -1), of] as const] : [])),
      entry: (state.entry ?? []).map((action) => named(behaviour.actions, 'action', action, chart)),
      timers: Object.keys(state.after ?? {}).map((delay) => ({
        id: `after.${delay}`,
        event: { type: afterType(chart, name, delay) },
        ms: named(behaviour.delays, 'delay', delay, chart),
      })),
      effects: state.effects ?? [],
      final: state.final === true,
    })
  }
  return compiled
}
