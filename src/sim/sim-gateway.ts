import type { Failure } from '../domain/facts'
import { modelKey } from '../domain/job'
import type { NodeDescription } from '../domain/node'
import type { Clock } from '../ports/clock'
import { NodeFault, type NodeGateway, type ReplyListener } from '../ports/node-gateway'
import type { Occupant, SimNode } from './sim-node'

export interface SimGateway extends NodeGateway {
  /** The client stops reading the answer that it is getting. */
  hangUp(request: string): void
}

const WIRE_MS = 1
/** An engine that writes notices a closed connection at its next write. */
const NOTICE_MS = 50

/** The way to simulated machines. `breach` is told what a router must never do. */
export const createSimGateway = (
  nodes: ReadonlyMap<string, SimNode>,
  clock: Clock,
  breach: (what: string) => void,
): SimGateway => {
  const sent = new Set<string>()
  /** What a client that hangs up calls, by request, while its answer flows. */
  const answering = new Map<string, () => void>()
  /** When the last poll that was answered began, by node. */
  const answeredAt = new Map<string, number>()
  /** When a request found a node down, by both. */
  const refusedAt = new Map<string, number>()

  const fault = (kind: Failure['class'], message: string, elapsedMs = 0): NodeFault =>
    new NodeFault({ class: kind, message, bytes: 0, elapsedMs })

  const nodeOf = ({ name }: NodeDescription): SimNode => {
    const node = nodes.get(name)
    if (node === undefined) throw new Error(`no simulated node '${name}'`)
    return node
  }

  /** Resolves after so many ms of the machine's own time; rejects when it is down, crashes, or the caller gives up. */
  const work = (node: SimNode, ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(fault('connect_timeout', 'given up')), { once: true })
      if (node.isDown) clock.setTimeout(() => reject(fault('connect', 'connection refused')), WIRE_MS)
      else node.later(ms, resolve, () => reject(fault('reset', 'connection reset')))
    })

  return {
    report: async (description, signal) => {
      const node = nodeOf(description)
      const askedAt = clock.now()
      await work(node, node.between([1, 30]), signal)
      while (clock.now() < node.deafUntil) await work(node, node.deafUntil - clock.now(), signal)
      answeredAt.set(node.spec.name, askedAt)
      return node.report()
    },

    load: async (description, model, { evicts }, signal) => {
      const node = nodeOf(description)
      await work(node, WIRE_MS, signal)
      const ms = node.beginLoad(model, evicts)
      const isBad = typeof ms === 'string' || node.isUnlucky()
      try {
        await work(node, typeof ms === 'string' ? WIRE_MS : ms, signal)
      } finally {
        node.endLoad(model, !isBad && !signal.aborted && !node.isDown)
      }
      if (isBad) throw fault('status', typeof ms === 'string' ? ms : 'the load failed')
    },

    unload: () => Promise.resolve(),

    forward: ({ request, attempt, node: description, model }, listener, signal) => {
      const node = nodeOf(description)
      const key = `${request}/${attempt}`
      if (sent.has(key)) breach(`${key} was sent twice`)
      sent.add(key)
      const refused = refusedAt.get(`${request} ${description.name}`)
      if (refused !== undefined && (answeredAt.get(description.name) ?? 0) < refused)
        breach(`${key} was sent to ${description.name} again, which has not answered since it was down`)
      return answer(node, { key, model: modelKey(model), phase: 'prefill', gone: false }, request, listener, signal)
    },

    cut: (request) => {
      if (!answering.has(request)) breach(`${request} is cut although no answer of it flows`)
      answering.delete(request)
    },

    hangUp: (request) => answering.get(request)?.(),
  }

  function answer(node: SimNode, occupant: Occupant, request: string, listener: ReplyListener, signal: AbortSignal) {
    const sentAt = clock.now()
    const flow = { lastByteAt: sentAt, bytes: 0, clientStalledSince: 0 }
    let isOver = false
    const elapsed = (): number => clock.now() - sentAt
    const failure = (kind: Failure['class'], message: string): Failure => ({
      class: kind,
      message,
      bytes: flow.bytes,
      elapsedMs: elapsed(),
    })
    const end = (tell: () => void): void => {
      if (isOver) return
      isOver = true
      node.leave(occupant)
      answering.delete(request)
      tell()
    }
    const finish = (broken?: Failure): void =>
      end(() =>
        listener.finished({
          end: broken === undefined ? 'completed' : 'incomplete',
          status: 200,
          bytes: flow.bytes,
          durationMs: elapsed(),
          ...(broken === undefined ? { tokensOut: flow.bytes } : { failure: broken }),
        }),
      )
    const fail = (broken: Failure): void => end(() => listener.failed(broken))
    const onCrash = (): void =>
      occupant.phase === 'prefill'
        ? fail(failure('reset', 'connection reset'))
        : finish(failure('truncated', 'connection reset'))

    const decode = (): void => {
      if (isOver) return
      if (node.isUnlucky()) {
        fail(failure('status', 'the engine answered 500'))
        return
      }
      occupant.phase = 'decode'
      flow.lastByteAt = clock.now()
      flow.bytes = 1
      answering.set(request, () => end(() => listener.left(flow.bytes)))
      listener.started({ status: 200, headers: {}, body: new Uint8Array() }, elapsed())
      node.later(
        node.between(node.spec.decodeMs),
        () => {
          flow.lastByteAt = clock.now()
          flow.bytes = 100
          if (node.isUnlucky()) finish(failure('truncated', 'the stream broke'))
          else finish()
        },
        onCrash,
      )
    }

    const arrive = (): void => {
      if (isOver) return
      if (!node.isResident(occupant.model)) {
        fail(failure('status', 'the model is not in memory'))
        return
      }
      node.enter(
        occupant,
        () => {
          if (isOver) node.leave(occupant)
          else node.later(node.between(node.spec.prefillMs), decode, onCrash)
        },
        onCrash,
      )
    }

    signal.addEventListener(
      'abort',
      () => {
        answering.delete(request)
        if (isOver || occupant.gone) return
        occupant.gone = true
        isOver = true
        if (occupant.phase === 'decode') node.later(NOTICE_MS, () => node.leave(occupant))
        else if (node.spec.kind !== 'ollama') node.leave(occupant)
        else {
          // It reads the prompt to its end before it looks at anything else.
          const ms = node.between(node.spec.prefillMs)
          node.deafUntil = clock.now() + ms
          node.later(ms, () => node.leave(occupant))
        }
      },
      { once: true },
    )
    const refuse = (): void => {
      refusedAt.set(`${request} ${node.spec.name}`, clock.now())
      fail(failure('connect', 'connection refused'))
    }
    if (node.isDown) clock.setTimeout(refuse, WIRE_MS)
    else node.later(WIRE_MS, arrive, onCrash)
    return flow
  }
}
