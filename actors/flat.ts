/**
 * Flat statecharts as table-driven actor logic, for actors that hear an event per request. Same actors, same mailboxes,
 * same inspection and supervision as an XState machine, at a fraction of its cost; semantics are XState's (a test runs
 * random charts both ways), plus what a request needs: effects that live while their state does, several named
 * deadlines per state, and sends that leave after the new snapshot is in place.
 */
import type { ActorLogic, ActorScope, ActorSystem, EventObject, Snapshot } from 'xstate'
import { type Api, apiFor } from './flat-api'
import { type Arc, type Behaviour, type Chart, type CompiledArc, type CompiledState, compile } from './flat-chart'
import { isInspected } from './spawn'

export type { Api, Arc, Chart }

const RUNNING = Symbol('running effects')

/** Why a signal aborts, made once: each `abort()` of its own would build an exception with a stack. */
const LEFT = new DOMException('The state that this ran in was left.', 'AbortError')

export type FlatSnapshot<C extends object> = Snapshot<unknown> & {
  readonly value: string
  readonly context: C
  readonly [RUNNING]?: Running[] | undefined
}

/** An effect that has begun and whose state, or one that names it too, has not been left. */
interface Running {
  readonly effect: string
  readonly controller: AbortController
}

export type FlatLogic<C extends object, E extends EventObject, I> = ActorLogic<
  FlatSnapshot<C>,
  E,
  I,
  ActorSystem<never>,
  EventObject
> & {
  readonly chart: Chart
}

type Scope<C extends object, E extends EventObject> = ActorScope<FlatSnapshot<C>, E, ActorSystem<never>, EventObject>
type Internals = {
  _sendInspectionEvent(event: object): void
}

/** A transition that was taken: from which state, and the declaration in the chart. */
export interface Taken {
  readonly source: string
  readonly declared: Arc
}

/** The microstep that an XState machine would report; nothing happens while nobody inspects. */
const tellInspectors = <C extends object, E extends EventObject>(
  { self, system }: Scope<C, E>,
  event: E,
  snapshot: FlatSnapshot<C>,
  source: string,
  declared: Arc,
): void => {
  if (!isInspected(system)) return
  const taken: Taken = { source, declared }
  ;(system as unknown as Internals)._sendInspectionEvent({
    type: '@xstate.microstep',
    actorRef: self,
    event,
    snapshot,
    _transitions: [taken],
  })
}

/** Turns a chart and its behaviour into actor logic. Throws at once on a name the chart uses and nobody provides. */
export const flat = <C extends object, E extends EventObject, I>(
  chart: Chart,
  behaviour: Behaviour<C, E, I>,
): FlatLogic<C, E, I> => {
  const states = compile(chart, behaviour)
  if (!states.has(chart.initial)) throw new Error(`${chart.id}: no initial state '${chart.initial}'`)
  const stateOf = (value: string): CompiledState<C, E> => states.get(value) as CompiledState<C, E>

  const snapshot = (
    status: 'active' | 'done' | 'stopped',
    value: string,
    context: C,
    running: Running[] | undefined,
  ): FlatSnapshot<C> =>
    ({
      status,
      value,
      context,
      output: status === 'done' ? (behaviour.output?.(context) ?? undefined) : undefined,
      error: undefined,
      [RUNNING]: running,
    }) as FlatSnapshot<C>

  const abortAll = (running: Running[] | undefined): void => {
    if (running === undefined) return
    for (const { controller } of running.splice(0)) controller.abort(LEFT)
  }

  const leave = (state: CompiledState<C, E>, running: Running[]): void => {
    for (let at = running.length - 1; at >= 0; at--) {
      const { effect, controller } = running[at] as Running
      if (state.effects.includes(effect)) continue
      running.splice(at, 1)
      controller.abort(LEFT)
    }
  }

  const enter = (
    state: CompiledState<C, E>,
    context: C,
    event: E,
    scope: Scope<C, E>,
    running: Running[] | undefined,
  ) => {
    const api = apiFor(scope)
    for (const action of state.entry) action(context, event, api)
    for (const timer of state.timers) {
      const ms = typeof timer.ms === 'number' ? timer.ms : timer.ms(context)
      if (ms !== Number.POSITIVE_INFINITY) api.later(timer.event as E, ms, timer.id)
    }
    if (running !== undefined) leave(state, running)
    return state.effects.length === 0 ? running : begin(state, context, api, running ?? [])
  }

  const begin = (state: CompiledState<C, E>, context: C, api: Api<E>, running: Running[]): Running[] => {
    for (const effect of state.effects) {
      if (running.some((one) => one.effect === effect)) continue
      const controller = new AbortController()
      running.push({ effect, controller })
      const run = behaviour.effects?.[effect]
      api.defer(() => {
        if (!controller.signal.aborted) run?.(context, api, controller.signal)
      })
    }
    return running
  }

  /** Only what no other name matches. */
  const inFamily = ({ families }: CompiledState<C, E>, type: string): readonly CompiledArc<C, E>[] | undefined =>
    families.find(([prefix]) => type.startsWith(prefix))?.[1]

  const step = (current: FlatSnapshot<C>, event: E, scope: Scope<C, E>): FlatSnapshot<C> => {
    const state = stateOf(current.value)
    const arcs = state.arcs.get(event.type) ?? inFamily(state, event.type)
    if (arcs === undefined) return current
    const { context } = current
    for (const arc of arcs) {
      if (arc.guard !== undefined && !arc.guard(context, event)) continue
      const moves = arc.target !== undefined && (arc.target !== current.value || arc.reenter)
      if (moves) for (const timer of state.timers) scope.system.scheduler.cancel(scope.self, timer.id)
      if (arc.actions.length > 0) {
        const api = apiFor(scope)
        for (const action of arc.actions) action(context, event, api)
      }
      const value = arc.target ?? current.value
      const running = moves ? enter(stateOf(value), context, event, scope, current[RUNNING]) : current[RUNNING]
      const next = snapshot(moves && stateOf(value).final ? 'done' : 'active', value, context, running)
      tellInspectors(scope, event, next, current.value, arc.declared)
      return next
    }
    return current
  }

  return {
    chart,
    transition: (current, event, scope) => {
      if ((event as EventObject).type === 'xstate.stop') {
        abortAll(current[RUNNING])
        return snapshot('stopped', current.value, current.context, undefined)
      }
      try {
        return step(current, event, scope as unknown as Scope<C, E>)
      } catch (error) {
        abortAll(current[RUNNING])
        throw error
      }
    },
    start: (current, scope) => {
      const running = enter(
        stateOf(current.value),
        current.context,
        { type: 'xstate.init' } as E,
        scope as unknown as Scope<C, E>,
        current[RUNNING],
      )
      if (running !== undefined) (current as { [RUNNING]?: Running[] })[RUNNING] = running
    },
    getInitialSnapshot: (scope, input) =>
      snapshot('active', chart.initial, behaviour.context(input, apiFor(scope as unknown as Scope<C, E>)), undefined),
    getPersistedSnapshot: (current) => current,
    restoreSnapshot: (current) => current as unknown as FlatSnapshot<C>,
  }
}
