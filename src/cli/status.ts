import { modelKey } from '../domain/job'
import type { NodeView, Overview, QueueView, Waiter } from '../ports/fleet'
import { duration } from '../observe/words'
import type { Args } from './args'
import { withClient } from './client'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'
import { clip, type Column, table } from './table'

/** What the screen shows; also the document of `--json`. */
export interface StatusDocument {
  readonly overview: Overview
  readonly nodes: readonly NodeView[]
  readonly queues: readonly QueueView[]
  readonly waiters: readonly Waiter[]
}

const narrowest = 60
const indent = '  '
/** More would not leave the rest of the screen readable; `--json` has all of them. */
const shownWaiters = 5

/** A mark and a word for every state, so that neither colour nor the word's length is needed to tell them apart. */
const glyphs: Readonly<Record<string, string>> = {
  online: '*',
  suspect: '~',
  offline: 'x',
  paused: '=',
  draining: '-',
  circuit_open: '!',
  quarantined: '!',
  unknown: '?',
}

const uptime = (ms: number): string => {
  const minutes = Math.max(0, Math.floor(ms / 60_000))
  const hours = Math.floor(minutes / 60)
  const days = Math.floor(hours / 24)
  if (days > 0) return `${days} d ${hours % 24} h`
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** A model that is neither in memory nor at work has no slots: its node may have to drop another one for it. */
const slotsOf = ({ queues, resident, inFlight, maxConcurrency }: NodeView): string => {
  const here = new Set(resident.map(({ name }) => modelKey(name)))
  const usable = queues.filter(({ model, inFlight: running }) => running > 0 || here.has(modelKey(model)))
  const slots = Math.min(maxConcurrency ?? Number.POSITIVE_INFINITY, sum(usable.map((queue) => queue.slots)))
  return usable.length === 0 ? String(inFlight) : `${inFlight}/${slots}`
}

const residentOf = ({ resident, loading }: NodeView): string => {
  const names = resident.map(({ name, state }) => (state === 'loading' ? `${name} (loading)` : name))
  const all =
    loading === undefined || resident.some(({ name }) => name === loading) ? names : [...names, `${loading} (loading)`]
  return all.length === 0 ? '-' : all.join(' ')
}

const nodeColumns: readonly Column[] = [
  { title: 'NODE', most: 18 },
  { title: 'KIND', most: 10 },
  { title: 'STATE', most: 14 },
  { title: 'SLOTS', most: 7, right: true },
  { title: 'WAIT', most: 5, right: true },
  { title: 'VERSION', most: 10 },
  { title: 'RESIDENT', most: 0 },
]

const nodeRow = (node: NodeView): string[] => [
  node.name,
  node.kind,
  `${glyphs[node.state] ?? '?'} ${node.state}`,
  slotsOf(node),
  String(sum(node.queues.map((queue) => queue.waiting))),
  node.version ?? '-',
  residentOf(node),
]

const queueColumns: readonly Column[] = [
  { title: 'BUSY MODEL', most: 30 },
  { title: 'NODE', most: 18 },
  { title: 'SLOTS', most: 7, right: true },
  { title: 'WAIT', most: 5, right: true },
  { title: 'SLOTS FROM', most: 0 },
]

/** Where the number comes from, and what shows it where nobody vouches for it. */
const slotsFrom = ({ slotsBasis, parallelism }: QueueView): string => {
  if (parallelism === undefined || (slotsBasis !== 'learned' && !parallelism.trying)) return slotsBasis
  const { together, stood, overlapping, trying } = parallelism
  const shown = `${slotsBasis}: ${together} at once, ${stood} of ${overlapping} waited there`
  return trying ? `${shown}; one more is being tried` : shown
}

const queueRow = (queue: QueueView): string[] => [
  queue.model,
  queue.node,
  `${queue.inFlight}/${queue.slots}`,
  String(queue.waiting),
  slotsFrom(queue),
]

const waiterLine = ({ request, model, kind, node, waitedMs, reason }: Waiter): string =>
  `${request}  ${kind} ${duration(waitedMs)}  ${model}${node === undefined ? '' : ` on ${node}`}  ${reason}`

const section = (lines: readonly string[]): string[] => (lines.length === 0 ? [] : ['', ...lines])

/** The screen as text, at most `columns` terminal cells wide; `now` in ms since the epoch. */
export const renderStatus = (status: StatusDocument, url: string, columns: number, now: number): string => {
  const { overview, nodes, queues, waiters } = status
  const width = Math.max(narrowest, columns)
  const inner = width - indent.length
  const busy = queues.filter((queue) => queue.inFlight + queue.waiting + queue.lingering > 0)
  const counts = Object.entries(overview.requests).map(([end, count]) => `${end} ${count}`)

  const head = [
    `fleet ${overview.version}  ${url}  up ${uptime(now - overview.startedAt)}${overview.draining ? '  shutting down' : ''}`,
    `nodes ${overview.healthyNodes}/${overview.nodes}  models ${overview.models}  in flight ${overview.inFlight}  waiting ${overview.waiting}  held ${overview.held}`,
  ]
  const nodeLines =
    nodes.length === 0
      ? ['no nodes: start a local engine, or add [[nodes]] to fleet.toml']
      : table(nodeColumns, nodes.map(nodeRow), inner)
  const hintLines = nodes.flatMap(({ name, hint }) => (hint === undefined ? [] : [`${name}: ${hint}`]))
  const queueLines = busy.length === 0 ? [] : table(queueColumns, busy.map(queueRow), inner)
  const rest = waiters.length - shownWaiters
  const waiterLines = [...waiters.slice(0, shownWaiters).map(waiterLine), ...(rest > 0 ? [`and ${rest} more`] : [])]
  const totals = counts.length === 0 ? [] : [`requests  ${counts.join('  ')}`]

  const body = [nodeLines, hintLines, queueLines, waiterLines, totals].flatMap((lines) =>
    section(lines.map((line) => indent + line)),
  )
  return [...head, ...body].map((line) => `${clip(line.trimEnd(), width)}\n`).join('')
}

/** `fleet status`: one screen; `--json` one document; `--quiet` nothing but the exit code (0 when ready). */
export const status = (args: Args, io: Io, now = Date.now()): Promise<ExitCode> =>
  withClient(args, io, async (client) => {
    if (args.options.quiet) {
      await client.get('/readyz')
      return exitCode.done
    }
    const [overview, { nodes }, { queues, waiters }] = await Promise.all([
      client.get<Overview>('/api/v1/overview'),
      client.get<Pick<StatusDocument, 'nodes'>>('/api/v1/nodes'),
      client.get<Pick<StatusDocument, 'queues' | 'waiters'>>('/api/v1/queues'),
    ])
    const document: StatusDocument = { overview, nodes, queues, waiters }
    io.out(
      args.options.json
        ? `${JSON.stringify(document, null, 2)}\n`
        : renderStatus(document, client.url, io.columns, now),
    )
    return exitCode.done
  })
