import { type Place, type Problem, showPlace } from './problem'

/** What may be a secret that somebody wrote into the file although it does not belong there. */
const SECRETS = [
  /\b((?:[\w-]*(?:api[_-]?key|token|password|secret)|key)["']?\s*=\s*["']?)([^"'\s,}]+)/gi,
  // Not the name of a variable, so perhaps the key itself.
  /\b(key_(?:env|hash)\s*=\s*["']?)([^"'\s,}]*[^\w"'\s,}][^"'\s,}]*)/gi,
  /(:\/\/)([^/@\s"']+)(?=@)/g,
]

/**
 * All problems as people read them in a terminal: place, cause, the line with a caret, the word that was meant, and a
 * count at the end. `text` is the file's text. Ends with a newline; empty when there is no problem.
 */
export const renderProblems = (problems: readonly Problem[], text: string): string => {
  if (problems.length === 0) return ''
  const lines = text.split(/\r?\n/)
  const blocks = problems.map((problem) => renderProblem(problem, lines))
  return `${[...blocks, summary(problems)].join('\n\n')}\n`
}

const renderProblem = (problem: Problem, lines: readonly string[]): string => {
  const { severity, message, file, also = [], notes = [] } = problem
  const head = `${severity}: ${message}`
  const excerpt = also.length === 0 ? renderExcerpt(problem, lines) : []
  const margin = ' '.repeat(excerpt.length > 0 ? String(problem.line).length + 1 : 2)
  const places: readonly Place[] = file === undefined ? also : [{ ...problem, file }, ...also]
  return [
    head,
    ...(places.length > 0 ? [`  --> ${places.map(showPlace).join(', ')}`] : []),
    ...excerpt,
    ...(excerpt.length === 0 && problem.suggestion !== undefined
      ? [`${margin}= ${didYouMean(problem.suggestion)}`]
      : []),
    ...notes.map((note) => `${margin}= ${note}`),
  ].join('\n')
}

const renderExcerpt = ({ line, column = 1, length = 1, suggestion }: Problem, lines: readonly string[]): string[] => {
  const source = line === undefined ? undefined : lines[line - 1]
  if (source === undefined) return []
  const margin = ' '.repeat(String(line).length)
  const indent = source.slice(0, column - 1).replace(/[^\t]/g, ' ')
  const caret = '^'.repeat(Math.max(1, length))
  const hint = suggestion === undefined ? '' : ` ${didYouMean(suggestion)}`
  return [`${margin} |`, `${line} | ${hideSecrets(source)}`, `${margin} | ${indent}${caret}${hint}`]
}

const didYouMean = (suggestion: string): string => `did you mean "${suggestion}"?`

/** Keeps the length, so that the caret still stands under what it means. */
const hideSecrets = (line: string): string =>
  SECRETS.reduce(
    (shown, pattern) => shown.replace(pattern, (_, before: string, value: string) => before + '*'.repeat(value.length)),
    line,
  )

const summary = (problems: readonly Problem[]): string => {
  const errors = problems.filter(({ severity }) => severity === 'error').length
  const warnings = problems.length - errors
  return [count(errors, 'error'), count(warnings, 'warning')].filter((part) => part !== '').join(', ')
}

const count = (many: number, word: string): string => (many === 0 ? '' : `${many} ${word}${many === 1 ? '' : 's'}`)
