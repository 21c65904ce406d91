/** Which requests a fault meets. Absent members match everything. */
export interface FaultMatch {
  readonly model?: string
  /** Start of the path, or a pattern. */
  readonly path?: string | RegExp
}

/** What goes wrong. Times in real ms; `afterChunks` counts the events (SSE, NDJSON lines) that still get through. */
export type FaultKind =
  /** Read, never answered; answered after all once the fault is taken away. */
  | { readonly type: 'freeze' }
  /** Connections are accepted and never read. */
  | { readonly type: 'blackhole' }
  /** The process is gone: listener closed, connections reset. Back when the fault is taken away. */
  | { readonly type: 'refuse' }
  /** A kept-alive connection swallows its next request; new connections work. */
  | { readonly type: 'half_open' }
  /** Reset before the head of the answer. */
  | { readonly type: 'reset'; readonly afterMs?: number }
  /** Reset in the middle of the answer. */
  | { readonly type: 'cut'; readonly afterChunks: number }
  /** The answer stops as if it were whole. `fin`: closed without the last chunk of the transfer coding. */
  | { readonly type: 'truncate'; readonly afterChunks: number; readonly framing?: 'clean' | 'fin' }
  /** A silent gap, then the rest. */
  | { readonly type: 'gap'; readonly afterChunks: number; readonly ms: number }
  | {
      readonly type: 'status'
      readonly status: number
      readonly afterMs?: number
      /** Default `json`: the engine's own error body. */
      readonly body?: 'json' | 'html' | 'empty'
      readonly message?: string
      readonly headers?: Readonly<Record<string, string>>
    }
  /** The answer starts late. */
  | { readonly type: 'slow'; readonly ms: number }
  /** An error inside a 200: as JSON, as an HTML page, or as an event after `afterChunks` good ones. */
  | {
      readonly type: 'body_error'
      readonly shape: 'json' | 'html' | 'event'
      readonly afterChunks?: number
      readonly message?: string
    }
  /** Bytes that are not HTTP. */
  | { readonly type: 'garbage' }
  | { readonly type: 'oversized_header'; readonly bytes: number }
  /** `content-encoding: gzip` on plain bytes. */
  | { readonly type: 'gzip_label' }
  /** So many MB (10^6 bytes) as fast as the socket takes them. */
  | { readonly type: 'huge'; readonly megabytes: number }
  /** Disconnects go unnoticed until the first token. */
  | { readonly type: 'linger' }
  | { readonly type: 'slow_load'; readonly ms: number }
  | { readonly type: 'fail_load'; readonly message?: string }
  /** A load that finds no room kills running answers. */
  | { readonly type: 'evict_busy' }
  /** Lists a model as resident that is not. */
  | { readonly type: 'lie_resident'; readonly model: string }
  /** Reports an expiry in the past and never unloads. */
  | { readonly type: 'stale_expiry'; readonly agoMs: number }

export type FaultType = FaultKind['type']

export type Fault = FaultKind & {
  /** Only so many times; default: until taken away. */
  readonly times?: number
  /** How likely it meets a request that matches, 0 to 1; default 1. */
  readonly chance?: number
  readonly match?: FaultMatch
  /** Which requests it meets; default `inference`. `refuse` and `blackhole` meet everything. */
  readonly on?: 'inference' | 'polls' | 'all'
}

export type FaultOf<T extends FaultType> = Extract<FaultKind, { type: T }>

/** What a fault is matched against. */
export interface FaultTarget {
  readonly path: string
  readonly model?: string
  readonly inference: boolean
}

/** The faults in force; changed at any time. */
export interface FaultPlan {
  /** Returns the function that takes it away again. */
  add(fault: Fault): () => void
  /** All, or all of one type. */
  clear(type?: FaultType): void
  /** The first fault of the type that matches, counted against its `times`. */
  take<T extends FaultType>(type: T, target?: FaultTarget): FaultOf<T> | undefined
  /** The same without counting. */
  peek<T extends FaultType>(type: T, target?: FaultTarget): FaultOf<T> | undefined
  /** Runs once when that fault is taken away. */
  onGone(fault: FaultKind, run: () => void): void
  /** Hears each change of the set. */
  watch(run: () => void): void
}

interface Active {
  readonly fault: Fault
  left: number
  readonly gone: (() => void)[]
}

const matches = (fault: Fault, target: FaultTarget | undefined): boolean => {
  if (!target) return true
  const on = fault.on ?? 'inference'
  if (on !== 'all' && (on === 'inference') !== target.inference) return false
  const { model, path } = fault.match ?? {}
  if (model !== undefined && model !== target.model) return false
  if (path === undefined) return true
  return typeof path === 'string' ? target.path.startsWith(path) : path.test(target.path)
}

/** `random` decides about faults with a chance. */
export const createFaultPlan = (random: () => number): FaultPlan => {
  let actives: Active[] = []
  const watchers: (() => void)[] = []

  const drop = (out: (active: Active) => boolean): void => {
    const dropped = actives.filter(out)
    actives = actives.filter((active) => !out(active))
    for (const watcher of watchers) watcher()
    for (const active of dropped) for (const run of active.gone.splice(0)) run()
  }

  const find = (type: FaultType, target?: FaultTarget): Active | undefined =>
    actives.find((active) => active.fault.type === type && active.left > 0 && matches(active.fault, target))

  return {
    add(fault) {
      const active: Active = { fault, left: fault.times ?? Number.POSITIVE_INFINITY, gone: [] }
      actives.push(active)
      for (const watcher of watchers) watcher()
      return () => drop((each) => each === active)
    },
    clear: (type) => drop((active) => type === undefined || active.fault.type === type),
    take<T extends FaultType>(type: T, target?: FaultTarget) {
      const active = find(type, target)
      const isDue = active && (active.fault.chance ?? 1) > random()
      if (!isDue) return undefined
      active.left -= 1
      return active.fault as FaultOf<T> | undefined
    },
    peek: <T extends FaultType>(type: T, target?: FaultTarget) => find(type, target)?.fault as FaultOf<T> | undefined,
    onGone(fault, run) {
      const active = actives.find((each) => each.fault === fault)
      if (active) active.gone.push(run)
      else run()
    },
    watch: (run) => void watchers.push(run),
  }
}
