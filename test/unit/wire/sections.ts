/**
 * Text files of recorded bytes: `=== title` begins an entry, `--- head` a section of it, and what stands below, up to the line
 * end before the next of these lines, is the section to the byte. The last line is `===`.
 */
export interface Section {
  readonly head: string
  readonly body: string
}

export type Entries = ReadonlyMap<string, readonly Section[]>

const entryMark = '=== '
const sectionMark = '--- '
const endMark = '==='

const readEntry = (entry: string): readonly [string, readonly Section[]] => {
  const [title = '', ...sections] = entry.split(`\n${sectionMark}`)
  return [
    title,
    sections.map((section) => {
      const end = section.indexOf('\n')
      return end < 0 ? { head: section, body: '' } : { head: section.slice(0, end), body: section.slice(end + 1) }
    }),
  ]
}

/** Throws where a file has not the form, or an entry twice. */
export const parseSections = (text: string): Entries => {
  const end = `\n${endMark}\n`
  if (!text.startsWith(entryMark) || !text.endsWith(end)) throw new Error('not a file of sections')
  const entries = text.slice(entryMark.length, -end.length).split(`\n${entryMark}`).map(readEntry)
  const titles = new Map(entries)
  if (titles.size !== entries.length) throw new Error('an entry stands there twice')
  return titles
}

export const writeSections = (entries: Entries): string => {
  const texts = [...entries].flatMap(([title, sections]) => [
    `${entryMark}${title}`,
    ...sections.flatMap(({ head, body }) => [`${sectionMark}${head}`, body]),
  ])
  return `${[...texts, endMark].join('\n')}\n`
}
