import { printable } from './printable'

/** One column: how wide it may get, and on which side its text stands. */
export interface Column {
  readonly title: string
  readonly most: number
  readonly right?: true
}

const gap = '  '

/** Cuts a text to so many terminal cells; the cut is shown. Control characters become visible ones. */
export const clip = (raw: string, cells: number): string => {
  const text = printable(raw)
  if (Bun.stringWidth(text) <= cells) return text
  let kept = ''
  for (const character of text) {
    if (Bun.stringWidth(kept + character) > cells - 1) break
    kept += character
  }
  return `${kept}…`
}

const pad = (text: string, cells: number, right: true | undefined): string => {
  const fill = ' '.repeat(Math.max(0, cells - Bun.stringWidth(text)))
  return right ? fill + text : text + fill
}

/** Aligned lines within `width` terminal cells; the last column takes what the others leave. */
export const table = (columns: readonly Column[], rows: readonly (readonly string[])[], width: number): string[] => {
  const lines = [columns.map(({ title }) => title), ...rows]
  let left = width
  const widths = columns.map(({ most }, index) => {
    const longest = Math.max(...lines.map((line) => Bun.stringWidth(line[index] ?? '')))
    const cells = Math.max(1, Math.min(longest, index === columns.length - 1 ? left : most))
    left -= cells + gap.length
    return cells
  })
  return lines.map((line) =>
    columns
      .map(({ right }, index) => pad(clip(line[index] ?? '', widths[index] ?? 1), widths[index] ?? 1, right))
      .join(gap)
      .trimEnd(),
  )
}
