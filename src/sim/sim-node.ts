import { modelKey } from '../domain/job'
import type { NodeDescription, NodeKind, NodeReport } from '../domain/node'
import type { Clock } from '../ports/clock'
import type { Random } from '../ports/random'

/** A machine of a simulated fleet. Sizes in GB, rates in GB/s, times in ms as [least, most]. */
export interface SimNodeSpec {
  readonly name: string
  readonly kind: NodeKind
  readonly memoryGb: number
  /** Requests that one model runs at once. */
  readonly slots: number
  readonly models: readonly { readonly name: string; readonly sizeGb: number }[]
  readonly loadGbPerSecond: number
  readonly prefillMs: readonly [number, number]
  readonly decodeMs: readonly [number, number]
  /** 0 to 1: how likely a request or a load fails on its own. */
  readonly failureChance: number
}

/** One request at the engine. `gone`: the router closed the connection, the engine may not have noticed. */
export interface Occupant {
  readonly key: string
  readonly model: string
  phase: 'prefill' | 'decode'
  gone: boolean
}

/** The engine on one machine: memory, slots, and the ways in which such a machine fails. */
export interface SimNode {
  readonly spec: SimNodeSpec
  readonly description: NodeDescription
  readonly isDown: boolean
  report(): NodeReport
  /** It answers no poll before this, in ms since the epoch: it reads a prompt whose client has left. */
  deafUntil: number
  isResident(model: string): boolean
  /** Takes the request in; calls `begin` once a slot is free for it, or `dropped` when it crashes before. */
  enter(occupant: Occupant, begin: () => void, dropped: () => void): void
  leave(occupant: Occupant): void
  /** Brings the model into memory once `evicts` are out; ms until it is there, or why it cannot be. */
  beginLoad(model: string, evicts: readonly string[]): number | string
  endLoad(model: string, isLoaded: boolean): void
  /** Runs after so many ms of the machine's own time: not while it is frozen, never after it crashed. */
  later(ms: number, run: () => void, dropped?: () => void): void
  crash(): void
  revive(): void
  freeze(ms: number): void
  between(range: readonly [number, number]): number
  isUnlucky(): boolean
}

const SETTLED_AFTER_FREEZE_MS = 60_000

/** `breach` is told whenever the router asks of the machine what it must never ask. */
export const createSimNode = (
  spec: SimNodeSpec,
  clock: Clock,
  random: Random,
  breach: (what: string) => void,
): SimNode => {
  const sizes = new Map(spec.models.map(({ name, sizeGb }) => [modelKey(name), sizeGb]))
  /** Least recently used first. */
  const resident: string[] = []
  const inside = new Set<Occupant>()
  /** Those that compute, and those that the engine itself keeps waiting. */
  const begun = new Set<Occupant>()
  const queue: { readonly occupant: Occupant; readonly begin: () => void; readonly dropped: () => void }[] = []
  const onCrash = new Set<() => void>()
  let loading: string | undefined
  let isDown = false
  let frozenUntil = 0
  if (spec.kind === 'openai') resident.push(...spec.models.map(({ name }) => modelKey(name)))

  const sizeOf = (key: string): number => sizes.get(key) ?? 0
  const usedGb = (): number => resident.reduce((sum, key) => sum + sizeOf(key), 0)
  const live = (key: string): Occupant[] => [...inside].filter((one) => one.model === key && !one.gone)
  const begunOf = (key: string): number => [...begun].filter(({ model }) => model === key).length
  const evict = (key: string): void => void resident.splice(resident.indexOf(key), 1)

  const later: SimNode['later'] = (ms, run, dropped) => {
    const drop = (): void => {
      clock.clearTimeout(handle)
      dropped?.()
    }
    const due = (): void => {
      const left = frozenUntil - clock.now()
      if (left > 0) {
        handle = clock.setTimeout(due, left)
        return
      }
      onCrash.delete(drop)
      run()
    }
    let handle = clock.setTimeout(due, ms)
    onCrash.add(drop)
  }

  return {
    spec,
    description: {
      name: spec.name,
      kind: spec.kind,
      url: `http://${spec.name}.sim`,
      origin: 'configured',
      tags: [],
      distance: 0,
      memoryGb: spec.memoryGb,
      // An OpenAI-compatible server tells nothing of its slots.
      ...(spec.kind === 'openai' ? { maxConcurrency: spec.slots } : {}),
    },
    get isDown() {
      return isDown
    },
    report: () => ({
      models: spec.models,
      resident: resident.map((key) => ({
        name: key,
        state: 'ready',
        memoryGb: sizeOf(key),
        ...(spec.kind === 'llamacpp'
          ? { slots: spec.slots, running: [...inside].filter(({ model }) => model === key).length }
          : {}),
      })),
      canLoad: spec.kind !== 'openai',
      canUnload: spec.kind !== 'openai',
      memoryGb: spec.memoryGb,
    }),
    deafUntil: 0,
    isResident: (model) => resident.includes(modelKey(model)),
    enter: (occupant, begin, dropped) => {
      evict(occupant.model)
      resident.push(occupant.model)
      inside.add(occupant)
      const wasFrozen = clock.now() - frozenUntil < SETTLED_AFTER_FREEZE_MS
      // Whom the router hung up on counts as long as it keeps the slot for them; a frozen engine notices nobody leaving.
      const count = wasFrozen
        ? live(occupant.model).length
        : [...inside].filter(({ model }) => model === occupant.model).length
      // One more than an engine tells of nothing is how a router learns that it takes more.
      const most = spec.kind === 'ollama' ? spec.slots + 1 : spec.slots
      if (count > most) breach(`${count} requests on ${spec.slots} slots of ${spec.name}/${occupant.model}`)
      if (begunOf(occupant.model) < spec.slots) {
        begun.add(occupant)
        begin()
      } else queue.push({ occupant, begin, dropped })
      if (spec.kind === 'openai' && [...inside].filter(({ gone }) => !gone).length > spec.slots)
        breach(`more than max_concurrency ${spec.slots} on ${spec.name}`)
    },
    leave: (occupant) => {
      inside.delete(occupant)
      begun.delete(occupant)
      const at = queue.findIndex((one) => one.occupant.model === occupant.model)
      if (at < 0 || begunOf(occupant.model) >= spec.slots) return
      const [next] = queue.splice(at, 1)
      if (next === undefined) return
      begun.add(next.occupant)
      next.begin()
    },
    beginLoad: (model, evicts) => {
      const key = modelKey(model)
      if (loading !== undefined) breach(`${spec.name} loads ${key} while it loads ${loading}`)
      loading = key
      for (const name of evicts.map(modelKey)) {
        if (live(name).length > 0) breach(`${name} is pushed out of ${spec.name} while it answers`)
        if (resident.includes(name)) evict(name)
      }
      if (resident.includes(key)) evict(key)
      while (usedGb() + sizeOf(key) > spec.memoryGb) {
        const idle = resident.find((name) => live(name).length === 0)
        if (idle === undefined) return 'out of memory'
        evict(idle)
      }
      return (sizeOf(key) / spec.loadGbPerSecond) * 1000
    },
    endLoad: (model, isLoaded) => {
      if (loading !== modelKey(model)) return
      loading = undefined
      if (isLoaded) resident.push(modelKey(model))
    },
    later,
    crash: () => {
      isDown = true
      loading = undefined
      frozenUntil = 0
      if (spec.kind !== 'openai') resident.length = 0
      inside.clear()
      begun.clear()
      for (const { dropped } of queue.splice(0)) dropped()
      for (const drop of [...onCrash]) drop()
      onCrash.clear()
    },
    revive: () => {
      isDown = false
    },
    freeze: (ms) => {
      frozenUntil = Math.max(frozenUntil, clock.now() + ms)
    },
    between: ([least, most]) => least + random.next() * (most - least),
    isUnlucky: () => random.next() < spec.failureChance,
  }
}
