/**
 * `node scripts/run.mjs scripts/grafana.ts` writes deploy/grafana/fleet.json from the table below: a row of the
 * dashboard is a list of panels, a panel is a title, a unit and its queries. Change the table, not the file.
 */
import { join } from 'node:path'

interface Query {
  readonly expr: string
  /** Name of the series; `{{label}}` is the label's value. */
  readonly legend: string
}

interface Panel {
  readonly title: string
  /** Grafana's name of the unit. */
  readonly unit: string
  readonly queries: readonly Query[]
  /** One number instead of a curve. */
  readonly single?: true
  readonly stacked?: true
}

interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

const NODE = 'node=~"$node"'
const BOTH = `${NODE},model=~"$model"`
/** Grafana widens it to at least four scrapes. */
const WINDOW = '[$__rate_interval]'

const sum = (metric: string, labels: string, by = ''): string => `sum${by && ` by (${by})`} (${metric}{${labels}})`
const rate = (counter: string, labels: string, by = ''): string =>
  `sum${by && ` by (${by})`} (rate(${counter}{${labels}}${WINDOW}))`
const quantile = (q: number, histogram: string, labels: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (${['le', by].filter(Boolean).join(', ')}) (rate(${histogram}_bucket{${labels}}${WINDOW})))`

/** The middle and the slow end of a histogram, for each value of `by`. */
const p50p95 = (histogram: string, labels: string, by = ''): Query[] =>
  [0.5, 0.95].map((q) => ({
    expr: quantile(q, histogram, labels, by),
    legend: [by && `{{${by}}}`, `p${q * 100}`].filter(Boolean).join(' '),
  }))

const one = (expr: string, legend = ''): Query[] => [{ expr, legend }]

const ROWS: readonly Row[] = [
  {
    title: 'Now',
    panels: [
      { title: 'Healthy nodes', unit: 'short', single: true, queries: one('fleet_healthy_nodes') },
      { title: 'In flight', unit: 'short', single: true, queries: one(sum('fleet_inflight', BOTH)) },
      { title: 'Slots', unit: 'short', single: true, queries: one(sum('fleet_slots', BOTH)) },
      { title: 'Waiting', unit: 'short', single: true, queries: one('sum (fleet_waiting)') },
      { title: 'Held', unit: 'short', single: true, queries: one('sum (fleet_held)') },
      {
        title: 'Failed requests',
        unit: 'percentunit',
        single: true,
        queries: one(
          `${rate('fleet_requests_total', 'outcome=~"failed|incomplete|expired"')} / ${rate('fleet_requests_total', '')}`,
        ),
      },
      {
        title: 'Found in memory',
        unit: 'percentunit',
        single: true,
        queries: one(
          `${rate('fleet_residency_hits_total', BOTH)} / (${rate('fleet_residency_hits_total', BOTH)} + ${rate('fleet_residency_misses_total', BOTH)})`,
        ),
      },
    ],
  },
  {
    title: 'What a caller feels',
    panels: [
      {
        title: 'Time to first token',
        unit: 's',
        queries: p50p95('fleet_time_to_first_token_seconds', NODE, 'residency'),
      },
      { title: 'Whole answer', unit: 's', queries: p50p95('fleet_request_latency_seconds', NODE) },
      {
        title: 'Wait for a slot, by priority',
        unit: 's',
        queries: p50p95('fleet_queue_wait_seconds', `${NODE},priority=~"$priority"`, 'priority'),
      },
      {
        title: 'Tokens out',
        unit: 'short',
        queries: one(rate('fleet_tokens_total', `${BOTH},direction="output"`), 'tokens/s'),
      },
    ],
  },
  {
    title: 'Where it runs',
    panels: [
      {
        title: 'Requests by node',
        unit: 'reqps',
        stacked: true,
        queries: one(rate('fleet_requests_total', BOTH, 'node'), '{{node}}'),
      },
      {
        title: 'Tokens out by node',
        unit: 'short',
        stacked: true,
        queries: one(rate('fleet_tokens_total', `${BOTH},direction="output"`, 'node'), '{{node}}'),
      },
      {
        title: 'In flight against slots',
        unit: 'short',
        queries: [
          { expr: sum('fleet_inflight', BOTH, 'node'), legend: '{{node}}' },
          { expr: sum('fleet_slots', BOTH, 'node'), legend: '{{node}} slots' },
        ],
      },
    ],
  },
  {
    title: 'Memory',
    panels: [
      {
        title: 'Memory for models',
        unit: 'decbytes',
        queries: one(sum('fleet_node_memory_bytes', NODE, 'node, use'), '{{node}} {{use}}'),
      },
      {
        title: 'Models in memory',
        unit: 'decbytes',
        stacked: true,
        queries: one(sum('fleet_model_resident_bytes', BOTH, 'node, model'), '{{node}} {{model}}'),
      },
      {
        title: 'Loads and evictions an hour',
        unit: 'short',
        queries: [
          { expr: `sum by (node) (increase(fleet_model_load_seconds_count{${NODE}}[1h]))`, legend: '{{node}} loads' },
          { expr: `sum by (node) (increase(fleet_evictions_total{${BOTH}}[1h]))`, legend: '{{node}} evictions' },
        ],
      },
      {
        title: 'Load time p95',
        unit: 's',
        queries: one(quantile(0.95, 'fleet_model_load_seconds', NODE, 'node'), '{{node}}'),
      },
    ],
  },
  {
    title: 'Why',
    panels: [
      {
        title: 'Placements by reason',
        unit: 'reqps',
        stacked: true,
        queries: one(rate('fleet_placements_total', '', 'why'), '{{why}}'),
      },
      {
        title: 'Nodes ruled out, by reason',
        unit: 'reqps',
        stacked: true,
        queries: one(rate('fleet_eliminations_total', NODE, 'reason'), '{{reason}}'),
      },
      {
        title: 'Retries by failure',
        unit: 'reqps',
        queries: one(rate('fleet_retries_total', NODE, 'node, code'), '{{node}} {{code}}'),
      },
      {
        title: 'Time held, p95 by end',
        unit: 's',
        queries: one(quantile(0.95, 'fleet_hold_wait_seconds', '', 'outcome'), '{{outcome}}'),
      },
    ],
  },
  {
    title: 'Router',
    panels: [
      {
        title: 'Time to decide, p99',
        unit: 's',
        queries: one(quantile(0.99, 'fleet_placement_duration_seconds', '', 'policy'), '{{policy}}'),
      },
      {
        title: 'Event loop lag, p99',
        unit: 's',
        queries: one(quantile(0.99, 'fleet_event_loop_lag_seconds', ''), 'p99'),
      },
      { title: 'Actors', unit: 'short', queries: one('sum by (machine) (fleet_actors)', '{{machine}}') },
      {
        title: 'Actors started again in an hour',
        unit: 'short',
        queries: one('sum by (machine) (increase(fleet_actor_restarts_total[1h]))', '{{machine}}'),
      },
      {
        title: 'Age of the configuration',
        unit: 's',
        queries: one('time() - fleet_config_last_success_timestamp_seconds', 'since it was read'),
      },
    ],
  },
]

const SOURCE = { type: 'prometheus', uid: '$source' } as const
/** Grafana's grid. */
const WIDTH = 24
const ROW_HEIGHT = 1
const CURVE_HEIGHT = 8
const SINGLE_HEIGHT = 4

const panelJson = (panel: Panel, id: number, gridPos: object): object => ({
  id,
  type: panel.single ? 'stat' : 'timeseries',
  title: panel.title,
  datasource: SOURCE,
  gridPos,
  fieldConfig: {
    defaults: {
      unit: panel.unit,
      ...(panel.single ? {} : { min: 0 }),
      custom: panel.stacked ? { fillOpacity: 30, stacking: { mode: 'normal', group: 'A' } } : {},
    },
    overrides: [],
  },
  options: panel.single ? { colorMode: 'none' } : { tooltip: { mode: 'multi', sort: 'desc' } },
  targets: panel.queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource: SOURCE,
    expr,
    legendFormat: legend,
  })),
})

/** All rows, one under the other, the panels of each side by side. */
const panelsJson = (): object[] => {
  const panels: object[] = []
  let y = 0
  for (const row of ROWS) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: WIDTH, h: ROW_HEIGHT },
      panels: [],
    })
    y += ROW_HEIGHT
    const h = row.panels[0]?.single ? SINGLE_HEIGHT : CURVE_HEIGHT
    const w = Math.floor(WIDTH / row.panels.length)
    for (const [index, panel] of row.panels.entries())
      panels.push(panelJson(panel, panels.length + 1, { x: index * w, y, w, h }))
    y += h
  }
  return panels
}

const variable = (name: string, label: string, of: string): object => ({
  name,
  label,
  type: 'query',
  datasource: SOURCE,
  query: { query: `label_values(${of}, ${name})`, refId: name },
  refresh: 2,
  includeAll: true,
  allValue: '.*',
  multi: true,
  current: { text: 'All', value: '$__all' },
})

/** The dashboard as Grafana imports it. */
export const dashboard = (): object => ({
  uid: 'fleet',
  title: 'fleet',
  description: 'Where requests run, what callers feel, what is in memory, and why.',
  tags: ['fleet'],
  schemaVersion: 39,
  editable: true,
  graphTooltip: 1,
  time: { from: 'now-6h', to: 'now' },
  refresh: '30s',
  templating: {
    list: [
      { name: 'source', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} },
      variable('node', 'Node', 'fleet_node_up'),
      variable('model', 'Model', 'fleet_requests_total'),
      variable('priority', 'Priority', 'fleet_queue_wait_seconds_count'),
    ],
  },
  panels: panelsJson(),
})

/** Where it is kept, from the top of the repository. */
export const FILE = 'deploy/grafana/fleet.json'

export const render = (): string => `${JSON.stringify(dashboard(), null, 2)}\n`

if (import.meta.main) await Bun.write(join(import.meta.dir, '..', FILE), render())
