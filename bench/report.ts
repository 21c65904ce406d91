/** The measures as tables: for a terminal, and the same text for the README. */
import { readFileSync, writeFileSync } from 'node:fs'
import { added, ASSERTED_STREAMS, type Figure, isMet, type Measures, SERVERS, translation } from './figures'
import { median } from './statistics'

const number = (value: number): string => {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 100) return String(Math.round(value))
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

type Row = readonly (string | number)[]

/** A Markdown table whose columns line up in plain text too; everything but the first column is a number. */
const table = (head: readonly string[], rows: readonly Row[]): string => {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === 'number' ? number(cell) : cell)))
  const widths = head.map((name, column) => Math.max(name.length, 3, ...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(' | ')} |`
  const rule = `| ${widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`
  return [line(head), rule, ...cells.map(line)].join('\n')
}

const requestsTable = ({ loads, latencies }: Measures): string =>
  table(
    ['small requests', 'CPU us', 'requests/s, 32 conn.', 'added p50 us, 1 conn.', 'added p99 us'],
    SERVERS.map((name) => [
      name,
      median(loads[name].map(({ cpuUs }) => cpuUs)),
      median(loads[name].map(({ perSecond }) => perSecond)),
      added(latencies[name], latencies.direct, 'p50'),
      added(latencies[name], latencies.direct, 'p99'),
    ]),
  )

const TOLD: Readonly<Record<keyof Measures['translated'], string>> = {
  anthropic: 'Anthropic',
  responses: 'Responses',
  ollama: 'Ollama',
}

const translationTable = ({ streams, translated }: Measures): string => {
  const passed = streams[ASSERTED_STREAMS]?.fleet ?? []
  return table(
    ['translated, client on an OpenAI node', 'CPU us a chunk', 'added by translating us'],
    Object.entries(translated).map(([client, rounds]) => [
      `${ASSERTED_STREAMS} ${TOLD[client as keyof typeof TOLD]}`,
      median(rounds.map(({ cpuUs }) => cpuUs)),
      translation(rounds, passed),
    ]),
  )
}

const streamsTable = ({ streams }: Measures): string =>
  table(
    [
      'streams, 50 chunks/s each',
      'CPU us a chunk',
      'added p50 us',
      'added p99 us',
      'arrived',
      'chunks a read',
      'RSS MB',
    ],
    Object.entries(streams).flatMap(([count, byServer]) =>
      SERVERS.map((name) => {
        const rounds = byServer[name]
        return [
          `${count} ${name}`,
          name === 'direct' ? '' : median(rounds.map(({ cpuUs }) => cpuUs)),
          added(rounds, byServer.direct, 'p50'),
          added(rounds, byServer.direct, 'p99'),
          median(rounds.map(({ share }) => share)),
          median(rounds.map(({ perRead }) => perRead)),
          name === 'direct' ? '' : median(rounds.map(({ rssMb }) => rssMb)),
        ]
      }),
    ),
  )

const placementTable = ({ placed }: Measures): string =>
  table(
    ['one decision', 'p50 us', 'p99 us'],
    placed.map(({ nodes, holding, p50, p99 }) => [`${holding} of ${nodes} nodes hold the model`, p50, p99]),
  )

const sizesTable = ({ sizes: { few, many, idle } }: Measures): string =>
  table(
    ['size of the fleet', 'CPU us a request', 'idle, share of a core'],
    [
      ['4 nodes', median(few.map(({ cpuUs }) => cpuUs)), idle.few],
      ['2 000 nodes', median(many.map(({ cpuUs }) => cpuUs)), idle.many],
    ],
  )

const limit = ({ atMost, atLeast, unit }: Figure): string => {
  const shown = unit === 'x' ? '' : ` ${unit}`
  if (atMost !== undefined) return `<= ${atMost}${shown}`
  return atLeast === undefined ? '' : `>= ${atLeast}${shown}`
}

export const figuresTable = (figures: readonly Figure[]): string =>
  table(
    ['figure', 'measured', 'demanded', ''],
    figures.map((figure) => [
      figure.name,
      `${number(figure.value)}${figure.unit === 'x' ? '' : ` ${figure.unit}`}`,
      limit(figure),
      isMet(figure) ? 'met' : 'MISSED',
    ]),
  )

export const reportOf = (measures: Measures, figures: readonly Figure[], conditions: string): string =>
  [
    conditions,
    requestsTable(measures),
    streamsTable(measures),
    translationTable(measures),
    placementTable(measures),
    sizesTable(measures),
    figuresTable(figures),
  ].join('\n\n')

const BEGIN = '<!-- bench:begin -->'
const END = '<!-- bench:end -->'

/** Puts the text between the two marks of a file; throws when it has none. */
export const writeBetweenMarks = (file: string, text: string): void => {
  const before = readFileSync(file, 'utf8')
  const from = before.indexOf(BEGIN)
  const to = before.indexOf(END)
  if (from < 0 || to < from) throw new Error(`${file} has no ${BEGIN} … ${END}`)
  writeFileSync(file, `${before.slice(0, from + BEGIN.length)}\n${text}\n${before.slice(to)}`)
}
