import { Registry } from 'prom-client'
import { modelKey } from '../domain/job'
import type { NodeView, Overview } from '../ports/fleet'
import { createFactCounters } from './fact-counters'
import { allFamilies, createFamilies, type Families, keyFamilies } from './families'
import { setNodeGauges } from './gauges'
import type { Sink } from './journal'
import { createLabelLimit } from './label-limit'
import { registerProcessMetrics } from './process-metrics'

export interface MetricsOptions {
  /** For metrics that others add to the same page; `process_*` are registered here. */
  readonly registry?: Registry
  /** Different model names in labels; further ones are `other`. Read at each new name. */
  readonly maxModels: number
  /** Also count by the caller's key. Read at each fact and scrape. */
  readonly perKey?: boolean
  /** How the fleet stands; asked at each scrape. */
  snapshot(): { readonly nodes: readonly NodeView[]; readonly overview: Overview; readonly bufferedBytes?: number }
  /** Live actors by machine. */
  actors?(): Readonly<Record<string, number>>
  /** Of the source that the executable was built from. */
  readonly commit?: string
}

export interface Metrics extends Sink {
  /** The page in the Prometheus text format. */
  expose(): Promise<string>
  readonly contentType: string
  /** Ends the measuring of the event loop. */
  close(): void
}

const LAG_EVERY_MS = 250
/** Different values of a label that is closed by convention only. */
const MAX_WORDS = 64

/** Counts facts as they come and sets gauges from a snapshot at each scrape. */
export const createMetrics = (options: MetricsOptions): Metrics => {
  const { registry = new Registry(), snapshot, actors, commit = '' } = options
  const families = createFamilies()
  const models = createLabelLimit(() => options.maxModels, modelKey)
  const counters = createFactCounters(families, {
    models,
    words: createLabelLimit(() => MAX_WORDS),
    perKey: () => options.perKey === true,
  })
  registerProcessMetrics(registry)

  const setGauges = (): void => {
    const now = snapshot()
    setNodeGauges(families, now, models)
    families.bufferedBytes.set(now.bufferedBytes ?? 0)
    counters.setStanding()
    families.actors.clear()
    for (const [machine, count] of Object.entries(actors?.() ?? {})) families.actors.set(count, machine)
    families.buildInfo.set(1, now.overview.version, commit, `bun ${Bun.version}`)
  }

  return {
    name: 'metrics',
    hear: counters.hear,
    contentType: registry.contentType,
    close: watchEventLoop(families),
    expose: async () => {
      setGauges()
      const hidden = new Set(options.perKey ? [] : keyFamilies(families))
      const shown = allFamilies(families).filter((family) => !hidden.has(family))
      const own = shown.map((family) => family.render())
      return `${own.join('')}${await registry.metrics()}`
    },
  }
}

/** Measures how late a timer runs. Returns what ends it. */
const watchEventLoop = ({ eventLoopLag }: Families): (() => void) => {
  let expected = performance.now() + LAG_EVERY_MS
  const timer = setInterval(() => {
    const now = performance.now()
    eventLoopLag.observe(Math.max(0, now - expected) / 1000)
    expected = now + LAG_EVERY_MS
  }, LAG_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
