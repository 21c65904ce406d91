/** What was measured, and the figures that are demanded of it. */
import type { Translated } from './exchange'
import type { BySize } from './many-nodes'
import type { Rest } from './lifetime'
import type { Placed } from './placement'
import type { Latency, Loaded } from './requests'
import { median } from './statistics'
import type { Streamed } from './streams'

export const SERVERS = ['direct', 'nginx', 'bare', 'fleet'] as const
export type ServerName = (typeof SERVERS)[number]

/** One entry a round, rounds interleaved over the servers. */
export interface Measures {
  readonly loads: Readonly<Record<ServerName, readonly Loaded[]>>
  readonly latencies: Readonly<Record<ServerName, readonly Latency[]>>
  /** By the number of streams. */
  readonly streams: Readonly<Record<string, Readonly<Record<ServerName, readonly Streamed[]>>>>
  /** 200 streams through fleet whose clients speak another protocol than the node; rounds interleaved with those of `streams`. */
  readonly translated: Readonly<Record<Translated, readonly Streamed[]>>
  readonly placed: readonly Placed[]
  readonly sizes: BySize
  readonly startsMs: readonly number[]
  /** Absent in a quick look. */
  readonly rest?: Rest
}

export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly atMost?: number
  readonly atLeast?: number
}

export const isMet = ({ value, atMost, atLeast }: Figure): boolean =>
  (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast)

/** The median over the rounds of one number per round. */
const over = <T>(rounds: readonly T[], pick: (round: T) => number): number => median(rounds.map(pick))

/** The median over the rounds of the quotient of two servers, each round its own: what disturbs both disturbs it little. */
const ratio = <T>(above: readonly T[], below: readonly T[], pick: (round: T) => number): number =>
  median(above.map((round, index) => pick(round) / pick(below[index] as T)))

/** What a server adds to the latency of the direct way, in microseconds. */
export const added = (measured: readonly Latency[], direct: readonly Latency[], which: 'p50' | 'p99'): number =>
  median(measured.map((round, index) => round[which] - (direct[index] as Latency)[which]))

/** Growth of resting memory a round of requests, by the line of least squares, in MB. */
const trend = (values: readonly number[]): number => {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const spread = values.reduce((sum, _value, index) => sum + (index - middle) ** 2, 0)
  return values.reduce((sum, value, index) => sum + (index - middle) * (value - mean), 0) / spread
}

/** More growth than this a round, in MB, is a leak; less is the allocator. */
const TREND_MB = 4

const restFigures = ({ idleMb, restedMb }: Rest): Figure[] => [
  { name: 'idle RSS', value: idleMb, unit: 'MB', atMost: 80 },
  { name: 'RSS after 100 000 requests and 60 s of rest', value: restedMb[0] ?? Number.NaN, unit: 'MB', atMost: 120 },
  { name: 'RSS after five such rounds', value: restedMb.at(-1) ?? Number.NaN, unit: 'MB', atMost: 120 },
  { name: 'growth of the resting RSS a round', value: trend(restedMb), unit: 'MB', atMost: TREND_MB },
]

export const ASSERTED_STREAMS = 200

/** What translating adds to a chunk over passing it on, in microseconds of CPU. */
export const translation = (through: readonly Streamed[], passed: readonly Streamed[]): number =>
  median(through.map((round, index) => round.cpuUs - (passed[index] as Streamed).cpuUs))

export const figuresOf = (measures: Measures): Figure[] => {
  const { loads, latencies, streams, placed, sizes, startsMs, rest } = measures
  const many = streams[ASSERTED_STREAMS]
  const wide = placed.find(({ nodes, holding }) => nodes === 2_000 && holding === 200)
  return [
    {
      name: 'CPU per request, fleet / nginx',
      value: ratio(loads.fleet, loads.nginx, (one) => one.cpuUs),
      unit: 'x',
      atMost: 3,
    },
    {
      name: 'CPU per request, fleet / bare',
      value: ratio(loads.fleet, loads.bare, (one) => one.cpuUs),
      unit: 'x',
      atMost: 1.4,
    },
    {
      name: 'requests/s on one core, fleet / nginx',
      value: ratio(loads.fleet, loads.nginx, (one) => one.perSecond),
      unit: 'x',
      atLeast: 0.38,
    },
    {
      name: 'requests/s on one core, fleet / bare',
      value: ratio(loads.fleet, loads.bare, (one) => one.perSecond),
      unit: 'x',
      atLeast: 0.75,
    },
    {
      name: 'added p50 at one connection, fleet / nginx',
      value: added(latencies.fleet, latencies.direct, 'p50') / added(latencies.nginx, latencies.direct, 'p50'),
      unit: 'x',
      atMost: 2.8,
    },
    ...(many === undefined
      ? []
      : [
          {
            name: 'CPU per chunk at 200 streams, fleet / nginx',
            value: ratio(many.fleet, many.nginx, (one) => one.cpuUs),
            unit: 'x',
            atMost: 1.8,
          },
          {
            name: 'chunks that arrived at 200 streams',
            value: over(many.fleet, (one) => one.share),
            unit: 'x',
            atLeast: 0.99,
          },
          {
            name: 'CPU that translating adds to a chunk, dearest protocol',
            value: Math.max(...Object.values(measures.translated).map((rounds) => translation(rounds, many.fleet))),
            unit: 'us',
            atMost: 25,
          },
        ]),
    {
      name: 'placement p50, 200 of 2 000 nodes hold the model',
      value: wide?.p50 ?? Number.NaN,
      unit: 'us',
      atMost: 50,
    },
    {
      name: 'placement p99, 200 of 2 000 nodes hold the model',
      value: wide?.p99 ?? Number.NaN,
      unit: 'us',
      atMost: 500,
    },
    {
      name: 'CPU per request, 2 000 nodes / 4 nodes',
      value: ratio(sizes.many, sizes.few, (one) => one.cpuUs),
      unit: 'x',
      atMost: 1.3,
    },
    { name: 'start to first answer', value: median(startsMs), unit: 'ms', atMost: 300 },
    ...(rest === undefined ? [] : restFigures(rest)),
  ]
}
