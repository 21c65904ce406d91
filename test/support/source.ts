/** Just enough reading of TypeScript for rules about it: imports, and code without its comments and strings. */

/** The text with the inside of comments, strings, templates and regular expressions blanked; every position stays. */
export const codeOnly = (text: string): string => {
  const out = text.split('')
  const blank = (from: number, to: number) => {
    for (let at = from; at < to && at < text.length; at++) if (out[at] !== '\n') out[at] = ' '
  }
  /** Position after the code from `at`, which ends at an unmatched `}` (the hole of a template) or with the text. */
  const code = (start: number): number => {
    let at = start
    let depth = 0
    while (at < text.length) {
      const char = text.charAt(at)
      if (char === '{') depth++
      if (char === '}' && depth-- === 0) return at
      const end = skip(at, char)
      at = end === at ? at + 1 : end
    }
    return at
  }
  const skip = (at: number, char: string): number => {
    const two = text.slice(at, at + 2)
    if (two === '//') return blanked(at, endOf(text, '\n', at))
    if (two === '/*') return blanked(at, endOf(text, '*/', at + 2) + 2)
    if (char === "'" || char === '"') return quoted(at, char)
    if (char === '`') return template(at)
    if (char === '/' && startsRegex(text, at)) return regex(at)
    return at
  }
  const blanked = (from: number, to: number): number => {
    blank(from, to)
    return to
  }
  const quoted = (at: number, quote: string): number => {
    let end = at + 1
    while (end < text.length && text[end] !== quote && text[end] !== '\n') end += text[end] === '\\' ? 2 : 1
    blank(at + 1, end)
    return end + 1
  }
  const template = (at: number): number => {
    let end = at + 1
    while (end < text.length && text[end] !== '`') {
      if (text.startsWith('${', end)) {
        end = code(end + 2) + 1
      } else {
        const size = text[end] === '\\' ? 2 : 1
        blank(end, end + size)
        end += size
      }
    }
    return end + 1
  }
  const regex = (at: number): number => {
    let end = at + 1
    let inClass = false
    while (end < text.length && (inClass || text[end] !== '/')) {
      if (text[end] === '[') inClass = true
      if (text[end] === ']') inClass = false
      end += text[end] === '\\' ? 2 : 1
    }
    blank(at + 1, end)
    return end + 1
  }
  for (let at = 0; at < text.length; ) at = code(at) + 1
  return out.join('')
}

/** Every module specifier that the file names: static, type-only, re-exported and dynamic. */
export const importsOf = (text: string): string[] => {
  const code = codeOnly(text)
  return [...code.matchAll(/\b(?:from|import)\s*\(?\s*(['"])/g)].map((found) => {
    const start = found.index + found[0].length
    return text.slice(start, text.indexOf(found[1] ?? "'", start))
  })
}

const endOf = (text: string, mark: string, from: number): number => {
  const at = text.indexOf(mark, from)
  return at < 0 ? text.length : at
}

/** A `/` begins a regular expression where a value may begin: after an operator, an opening bracket or a keyword. */
const startsRegex = (text: string, at: number): boolean => {
  const before = text.slice(Math.max(0, at - 40), at).trimEnd()
  return before === '' || /[(,=:[!&|?{};+*%~^<>-]$/.test(before) || /\b(?:return|typeof|case|in|of|await)$/.test(before)
}
