import { type AST, ParseError } from 'toml-eslint-parser'
import { failure, type Problem } from './problem'

type Parse = (text: string) => AST.TOMLProgram

/** More than this many syntax errors say that it is not TOML at all. */
const MAX_SYNTAX_ERRORS = 20

/** How far back the start of a broken statement is looked for: each step parses the file up to there. */
const MAX_LINES_BACK = 100

const OPEN_STRING = 'Unterminated string constant'
const HEADER = /^\s*\[/
const STATEMENT = /^\s*(?:\[|[\w"'.-]+\s*=)/
const UNQUOTED_VALUE = /^(\s*[\w.-]+\s*=\s*)([^\s"'[{#][^#]*?)\s*(?:#.*)?$/

/** Keys whose value is not repeated. */
const MAY_BE_SECRET = /key|token|password|secret/i

/** The parser's words, where plainer ones help. */
const PLAIN_WORDS: ReadonlyMap<string, string> = new Map([
  ['Unspecified values are invalid', 'a value is missing after ='],
  ['Must be a newline', 'the line should end here'],
  ['Expected equal (=) token', 'an equals sign is missing'],
  [OPEN_STRING, 'the closing quote is missing'],
  ['Unterminated table-key', 'the closing ] is missing'],
  ['Unterminated array', 'the closing ] of the list is missing'],
  ['Unterminated inline table', 'the closing } is missing'],
])

/**
 * The parser stops at the first error. To report all of them, the statement that holds it is blanked (line numbers
 * stay) and the rest is parsed again; with a broken table header, its keys go too, since they would land elsewhere.
 */
export const parseWithRecovery = (
  text: string,
  file: string,
  parse: Parse,
): { readonly program: AST.TOMLProgram; readonly problems: readonly Problem[] } => {
  const lines = text.replace(/^\uFEFF/, ' ').split(/\r?\n/)
  const problems: Problem[] = []
  while (problems.length < MAX_SYNTAX_ERRORS) {
    const result = attempt(lines, parse)
    if (!(result instanceof ParseError)) return { program: result, problems }
    const { error, firstLine, end } = locate(lines, result, parse)
    problems.push(describe(error, lines[error.lineNumber - 1] ?? '', file))
    lines.fill('', firstLine, end)
  }
  return { program: parse(''), problems }
}

const attempt = (lines: readonly string[], parse: Parse): AST.TOMLProgram | ParseError => {
  try {
    return parse(lines.join('\n'))
  } catch (error) {
    if (error instanceof ParseError) return error
    throw error
  }
}

interface Broken {
  readonly error: ParseError
  /** Lines from 0: where the broken statement starts, and the line after its last. */
  readonly firstLine: number
  readonly end: number
}

/** The extent of the broken statement, and the error that says most about it. */
const locate = (lines: readonly string[], error: ParseError, parse: Parse): Broken => {
  let errorLine = Math.min(error.lineNumber, lines.length) - 1
  while (errorLine > 0 && lines[errorLine]?.trim() === '') errorLine--
  if (error.message === OPEN_STRING) return locateOpenString(lines, error, errorLine, parse)

  let firstLine = errorLine
  const earliest = Math.max(0, errorLine - MAX_LINES_BACK)
  while (firstLine > earliest && attempt(lines.slice(0, firstLine), parse) instanceof ParseError) firstLine--
  // Where the next statement begins too early, the fault is the end of the one before.
  const beginsStatement = firstLine < errorLine && STATEMENT.test(lines[errorLine] ?? '')
  const earlier = beginsStatement ? attempt(lines.slice(0, errorLine), parse) : error
  const isNextStart = HEADER.test(lines[firstLine] ?? '') ? HEADER : STATEMENT
  const next = lines.findIndex((line, index) => index > firstLine && isNextStart.test(line))
  return { error: earlier instanceof ParseError ? earlier : error, firstLine, end: next < 0 ? lines.length : next }
}

/** A multi-line string without end swallows the rest of the file; every text that reaches beyond its start is open too. */
const locateOpenString = (lines: readonly string[], error: ParseError, errorLine: number, parse: Parse): Broken => {
  const openBy = (line: number): ParseError | undefined => {
    const result = attempt(lines.slice(0, line + 1), parse)
    return result instanceof ParseError && result.message === OPEN_STRING ? result : undefined
  }
  let firstLine = 0
  let knownOpen = errorLine
  while (firstLine < knownOpen) {
    const middle = Math.floor((firstLine + knownOpen) / 2)
    if (openBy(middle)) knownOpen = middle
    else firstLine = middle + 1
  }
  const end = firstLine < errorLine ? lines.length : firstLine + 1
  return { error: openBy(firstLine) ?? error, firstLine, end }
}

const describe = (error: ParseError, line: string, file: string): Problem => {
  const { lineNumber, column } = error
  const unquoted = UNQUOTED_VALUE.exec(line)
  const [, before = '', value = ''] = unquoted ?? []
  if (unquoted && /^(?:Must be a newline|Unexpected)/.test(error.message)) {
    const at = { file, line: lineNumber, column: before.length + 1, length: value.length }
    const details = MAY_BE_SECRET.test(before) ? {} : { suggestion: value }
    return failure('syntax', '', 'text must stand in quotes', at, details)
  }
  const at = { file, line: lineNumber, column: Math.min(column, line.length) + 1, length: 1 }
  if (error.message.startsWith('Defining a key')) {
    const key = /^[\w-]+/.exec(line.slice(column))?.[0] ?? ''
    return failure('syntax', '', `${key ? `"${key}"` : 'this key'} is defined twice`, {
      ...at,
      length: key.length || 1,
    })
  }
  return failure('syntax', '', PLAIN_WORDS.get(error.message) ?? lowerFirst(error.message), at)
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
