import type { Edit } from '../bytes'
import { encode, find, splice, startsWithAt } from '../bytes'

const member = encode('"model":')
const newline = 0x0a
const blank = 0x20

/** A name as servers write it in JSON: as it is, or with everything beyond ASCII escaped. */
const spellings = (name: string): Uint8Array[] => {
  const plain = JSON.stringify(name)
  const escaped = plain.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [...new Set([plain, escaped])].map(encode)
}

/**
 * Replaces the model's name in whole records (lines) of an answer: in each line the first `"model":` whose value is one
 * of `names`. Text that mentions the name is safe, since quotes inside a string are escaped. Without a hit it returns
 * the very same array.
 */
export const createRenamer = (names: readonly string[], asked: string): ((records: Uint8Array) => Uint8Array) => {
  const values = names.flatMap(spellings)
  const replacement = JSON.stringify(asked)

  return (records) => {
    const edits: Edit[] = []
    for (let at = find(records, member); at >= 0; ) {
      let start = at + member.length
      while (records[start] === blank) start++
      const value = values.find((candidate) => startsWithAt(records, candidate, start))
      let next = start
      if (value) {
        edits.push({ start, end: start + value.length, text: replacement })
        next = records.indexOf(newline, start)
        if (next < 0) break
      }
      at = find(records, member, next)
    }
    return splice(records, edits)
  }
}
