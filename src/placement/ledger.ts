import { modelKey } from '../domain/job'
import { SlotMap } from '../domain/slot-map'

/** One request's claim on a node:model. */
export interface Reservation {
  readonly request: string
  readonly attempt: number
  readonly node: string
  /** As the fleet calls it. */
  readonly model: string
  /** `loading`: the slot is kept while the model loads. `lingering`: the client left, the engine may still compute. */
  state: 'loading' | 'running' | 'lingering'
  /** ms since the epoch at which it began to run (or to be kept). */
  since: number
  /** Batch work, of which a node takes only a share. */
  readonly isBatch?: true
}

export interface Load {
  readonly node: string
  readonly model: string
  readonly startedAt: number
  readonly evicts: readonly string[]
  readonly costGb?: number
  /** The window that it is loaded with. */
  readonly contextTokens?: number
  /** The request that makes the engine load it. */
  readonly request?: string
  /** When that request was over, in ms since the epoch; what is in memory since is for the next report to tell. */
  readonly overAt?: number
}

interface Account {
  reserved: number
  lingering: number
  bound: number
  /** Slots promised to the queue's next bound request, which has not answered yet. */
  granted: number
  /** The engine's running count beyond ours, at the last report that told. */
  foreign: number
  /** Most of ours that were there at once since the last report. */
  peak: number
}

/**
 * Slots, loads in progress and reservations of all nodes, written only by the dispatcher in the turn in which it
 * decides. Everything is keyed by request, so that one message releases whatever a request holds. O(1) per operation.
 */
export interface Ledger {
  reserve(reservation: Reservation): void
  /** What the request held, now free. */
  release(request: string): Reservation | undefined
  held(request: string): Reservation | undefined
  /** The slot stays taken although its request has left it; the reservation goes on under the returned `request`. */
  linger(request: string): Reservation | undefined
  beginLoad(load: Load): void
  endLoad(node: string): Load | undefined
  loading(node: string): Load | undefined
  loads(): readonly Load[]
  bind(node: string, model: string): void
  unbind(node: string, model: string): void
  /** Nobody is bound there, or without a name anywhere, any more, and no slot is promised. */
  unbindAll(queue?: { readonly node: string; readonly model: string }): void
  /** Everything that is reserved. */
  reservations(): readonly Reservation[]
  /** Promises a slot to the head of the queue; `settleGrant` takes the promise back once it answered. */
  grant(node: string, model: string): void
  settleGrant(node: string, model: string): void
  account(node: string, model: string): Readonly<Account>
  /** Some queue has bound requests that wait. */
  hasBound(): boolean
  /** Those queues. */
  boundQueues(): readonly { readonly node: string; readonly model: string }[]
  nodeInFlight(node: string): number
  /** Slots promised on the node, of whatever model. */
  nodeGranted(node: string): number
  /** Keys of the models that hold a slot of the node. */
  busyModels(node: string): readonly string[]
  /** Reservations on the node (of the model, where given), in the order in which they were made. */
  on(node: string, model?: string): readonly Reservation[]
  /** Takes in the engine's own running count; returns how many of ours it no longer runs. */
  observe(node: string, model: string, running: number): number
  chosen(node: string): void
  lastChosen(node: string): number
  /** When a request for the model last got a slot anywhere, in ms since the epoch. */
  lastUsedAt(key: string): number | undefined
  forget(node: string): void
  /** The node's count of changes; the same object for ever, so that a look at it costs nothing. */
  mark(node: string): Readonly<Mark>
  total(): number
  /** Throws when the counts and the reservations disagree; called after every event in simulation. */
  check(): void
}

const EMPTY: Account = { reserved: 0, lingering: 0, bound: 0, granted: 0, foreign: 0, peak: 0 }

/** Counts the changes of one node's accounts, so that what was derived from them can tell whether it still holds. */
export interface Mark {
  version: number
}

export const createLedger = (): Ledger => {
  const marks = new Map<string, Mark>()
  const reservations = new SlotMap<Reservation>()
  const byNode = new Map<string, SlotMap<Reservation>>()
  const accounts = new Map<string, Map<string, Account>>()
  const loads = new Map<string, Load>()
  const choices = new Map<string, number>()
  const uses = new Map<string, number>()
  let turn = 0
  let lingers = 0
  let bound = 0

  const mark = (node: string): Mark => {
    const known = marks.get(node)
    if (known !== undefined) return known
    const fresh = { version: 0 }
    marks.set(node, fresh)
    return fresh
  }

  const touch = (node: string): void => {
    mark(node).version += 1
  }

  /** The account, to be changed. */
  const open = (node: string, model: string): Account => {
    touch(node)
    const ofNode = accounts.get(node) ?? new Map<string, Account>()
    const key = modelKey(model)
    const account = ofNode.get(key) ?? { ...EMPTY }
    accounts.set(node, ofNode)
    ofNode.set(key, account)
    return account
  }

  const reserve = (reservation: Reservation): void => {
    if (reservations.has(reservation.request)) throw new Error(`${reservation.request} holds a reservation already`)
    reservations.set(reservation.request, reservation)
    uses.set(modelKey(reservation.model), reservation.since)
    const ofNode = byNode.get(reservation.node) ?? new SlotMap<Reservation>()
    byNode.set(reservation.node, ofNode.set(reservation.request, reservation))
    const account = open(reservation.node, reservation.model)
    account.reserved += 1
    account.peak = Math.max(account.peak, account.reserved)
  }

  const release = (request: string): Reservation | undefined => {
    const held = reservations.take(request)
    if (held === undefined) return undefined
    byNode.get(held.node)?.delete(request)
    const account = open(held.node, held.model)
    account.reserved -= 1
    if (held.state === 'lingering') account.lingering -= 1
    return held
  }

  return {
    reserve,
    release,
    held: (request) => reservations.get(request),
    linger: (request) => {
      const load = loads.get(reservations.get(request)?.node ?? '')
      const held = release(request)
      if (held === undefined) return undefined
      // Under a name of its own: the request may be back for another attempt, or gone.
      const kept: Reservation = { ...held, request: `${request}#${++lingers}`, state: 'lingering' }
      reserve(kept)
      open(held.node, held.model).lingering += 1
      if (load?.request === request) loads.set(held.node, { ...load, request: kept.request })
      return kept
    },
    beginLoad: (load) => {
      touch(load.node)
      loads.set(load.node, load)
    },
    endLoad: (node) => {
      touch(node)
      const load = loads.get(node)
      loads.delete(node)
      return load
    },
    loading: (node) => loads.get(node),
    loads: () => [...loads.values()],
    bind: (node, model) => {
      open(node, model).bound += 1
      bound += 1
    },
    unbind: (node, model) => {
      const account = open(node, model)
      if (account.bound === 0) return
      account.bound -= 1
      bound -= 1
    },
    unbindAll: (queue) => {
      if (queue === undefined) for (const node of accounts.keys()) touch(node)
      const of = queue === undefined ? [...accounts.values()].flatMap((ofNode) => [...ofNode.values()]) : []
      for (const account of queue === undefined ? of : [open(queue.node, queue.model)]) {
        bound -= account.bound
        account.bound = 0
        account.granted = 0
      }
    },
    reservations: () => [...reservations.values()],
    grant: (node, model) => {
      open(node, model).granted += 1
    },
    settleGrant: (node, model) => {
      const account = open(node, model)
      account.granted = Math.max(0, account.granted - 1)
    },
    account: (node, model) => accounts.get(node)?.get(modelKey(model)) ?? EMPTY,
    hasBound: () => bound > 0,
    boundQueues: () =>
      bound === 0
        ? []
        : [...accounts].flatMap(([node, ofNode]) =>
            [...ofNode].flatMap(([model, account]) => (account.bound > 0 ? [{ node, model }] : [])),
          ),
    nodeGranted: (node) => {
      let granted = 0
      for (const account of accounts.get(node)?.values() ?? []) granted += account.granted
      return granted
    },
    nodeInFlight: (node) => byNode.get(node)?.size ?? 0,
    busyModels: (node) => {
      const busy: string[] = []
      accounts.get(node)?.forEach((account, key) => {
        if (account.reserved > 0) busy.push(key)
      })
      return busy
    },
    on: (node, model) => {
      const all = [...(byNode.get(node)?.values() ?? [])]
      if (model === undefined) return all
      const key = modelKey(model)
      return all.filter((reservation) => modelKey(reservation.model) === key)
    },
    observe: (node, model, running) => {
      const account = open(node, model)
      account.foreign = Math.max(0, running - Math.max(account.peak, account.reserved))
      account.peak = account.reserved
      return Math.max(0, account.reserved - running)
    },
    chosen: (node) => {
      touch(node)
      choices.set(node, ++turn)
    },
    lastChosen: (node) => choices.get(node) ?? 0,
    lastUsedAt: (key) => uses.get(key),
    forget: (node) => {
      touch(node)
      loads.delete(node)
      for (const account of accounts.get(node)?.values() ?? []) account.foreign = 0
      choices.delete(node)
    },
    mark,
    total: () => reservations.size,
    check: () => {
      let reserved = 0
      for (const [node, ofNode] of accounts) {
        for (const [key, account] of ofNode) {
          const real = [...(byNode.get(node)?.values() ?? [])].filter((held) => modelKey(held.model) === key)
          const lingering = real.filter((held) => held.state === 'lingering').length
          if (real.length !== account.reserved || lingering !== account.lingering || account.bound < 0) {
            throw new Error(
              `ledger of ${node}/${key} says ${JSON.stringify(account)}, holds ${real.length} (${lingering} lingering)`,
            )
          }
          reserved += account.reserved
        }
      }
      if (reserved !== reservations.size) throw new Error(`ledger counts ${reserved}, holds ${reservations.size}`)
    },
  }
}
