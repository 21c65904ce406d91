import type { Frame, Framer } from './lines'
import { createLineSplitter } from './lines'

/** One JSON document a line; blank lines are dropped. */
export const createNdjsonFramer = (): Framer => {
  const lines = createLineSplitter()
  const frames = (texts: readonly string[]): Frame[] =>
    texts.filter((text) => text.trim() !== '').map((data) => ({ data }))
  return {
    push: (chunk) => frames(lines.push(chunk)),
    end: () => frames([lines.end() ?? '']),
  }
}
