import { type AST, parseTOML } from 'toml-eslint-parser'
import type { Place, Problem } from './problem'
import { parseWithRecovery } from './syntax'
import type { Entry, Located, Table } from './tree'

interface OpenTable {
  readonly type: 'table'
  readonly at: Place
  readonly entries: Map<string, Entry>
}

interface OpenList {
  readonly type: 'list'
  readonly at: Place
  readonly items: OpenTable[]
}

/**
 * Reads TOML with the position of every key and value. Lines with syntax errors are reported and left out, so that the
 * rest can still be checked. `file` is how places name the file.
 */
export const readToml = (
  text: string,
  file: string,
): { readonly root: Table; readonly problems: readonly Problem[] } => {
  const { program, problems } = parseWithRecovery(text, file, parseTOML)
  return { root: build(program, file), problems }
}

const build = (program: AST.TOMLProgram, file: string): Table => {
  const root = openTable({ file })

  const place = (node: AST.TOMLNode): Place => {
    const { start, end } = node.loc
    const isOneLine = start.line === end.line
    const length = isOneLine ? end.column - start.column : 1
    return { file, line: start.line, column: start.column + 1, length }
  }

  const convert = (node: AST.TOMLContentNode): Located => {
    const at = place(node)
    if (node.type === 'TOMLArray') return { type: 'list', at, items: node.elements.map(convert) }
    if (node.type === 'TOMLInlineTable') return fill(openTable(at), node.body)
    if (node.kind === 'string' || node.kind === 'boolean' || node.kind === 'integer' || node.kind === 'float') {
      return { type: 'scalar', at, kind: node.kind, value: node.value }
    }
    return { type: 'scalar', at, kind: 'other', value: node.datetime }
  }

  const descend = (table: OpenTable, key: Key): OpenTable => {
    const existing = table.entries.get(nameOf(key))?.value as OpenTable | OpenList | undefined
    if (existing?.type === 'table') return existing
    const lastItem = existing?.items.at(-1)
    if (lastItem) return lastItem
    const created = openTable(place(key))
    table.entries.set(nameOf(key), { at: place(key), value: created })
    return created
  }

  const append = (table: OpenTable, key: Key): OpenTable => {
    const created = openTable(place(key))
    const existing = table.entries.get(nameOf(key))?.value as OpenList | undefined
    if (existing) existing.items.push(created)
    else {
      const list: OpenList = { type: 'list', at: place(key), items: [created] }
      table.entries.set(nameOf(key), { at: place(key), value: list })
    }
    return created
  }

  const fill = (table: OpenTable, body: readonly AST.TOMLKeyValue[]): OpenTable => {
    for (const pair of body) {
      const { parents, last } = splitKey(pair.key)
      parents.reduce(descend, table).entries.set(nameOf(last), { at: place(last), value: convert(pair.value) })
    }
    return table
  }

  for (const node of program.body[0].body) {
    if (node.type === 'TOMLKeyValue') fill(root, [node])
    else {
      const { parents, last } = splitKey(node.key)
      const parent = parents.reduce(descend, root)
      fill(node.kind === 'array' ? append(parent, last) : descend(parent, last), node.body)
    }
  }
  return root
}

type Key = AST.TOMLBare | AST.TOMLQuoted

const openTable = (at: Place): OpenTable => ({ type: 'table', at, entries: new Map() })

const nameOf = (key: Key): string => (key.type === 'TOMLBare' ? key.name : key.value)

/** A TOML key has at least one part. */
const splitKey = ({ keys }: AST.TOMLKey): { readonly parents: readonly Key[]; readonly last: Key } => ({
  parents: keys.slice(0, -1),
  last: keys[keys.length - 1] as Key,
})
