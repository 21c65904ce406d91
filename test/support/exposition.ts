/** Reading the Prometheus text format, as far as tests need it. */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

export const samplesOf = (page: string): readonly Sample[] =>
  page.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name === undefined || value === undefined) return []
    const pairs = [...labels.matchAll(LABEL)].map(([, key, text]) => [key, text])
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
  })

/** Values of one metric added up by a label; series at zero are left out. */
export const sumBy = (page: string, name: string, label: string): Record<string, number> => {
  const sums: Record<string, number> = {}
  for (const sample of samplesOf(page)) {
    if (sample.name !== name || sample.value === 0) continue
    const key = sample.labels[label] ?? ''
    sums[key] = (sums[key] ?? 0) + sample.value
  }
  return sums
}
