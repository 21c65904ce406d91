import type { Frame, Framer } from './lines'
import { createLineSplitter } from './lines'

/** Server-sent events from bytes. Comments are dropped; several `data:` lines of one event are joined by a line end. */
export const createSseFramer = (): Framer => {
  const lines = createLineSplitter()
  let data: string[] = []
  let event: string | undefined

  const flush = (): Frame[] => {
    const frame = data.length === 0 ? [] : [{ data: data.join('\n'), ...(event !== undefined && { event }) }]
    data = []
    event = undefined
    return frame
  }

  const take = (line: string): Frame[] => {
    if (line === '') return flush()
    const colon = line.indexOf(':')
    if (colon === 0) return []
    const name = colon < 0 ? line : line.slice(0, colon)
    const rest = colon < 0 ? '' : line.slice(colon + 1)
    const value = rest.startsWith(' ') ? rest.slice(1) : rest
    if (name === 'data') data.push(value)
    else if (name === 'event') event = value
    return []
  }

  return {
    push: (chunk) => lines.push(chunk).flatMap(take),
    // Strictly an event without its blank line is incomplete; some servers close right after their last data line.
    end: () => [...take(lines.end() ?? ''), ...flush()],
  }
}
