const LEVELS: Readonly<Record<string, string>> = { debug: 'debug', info: 'info ', warn: 'WARN ', error: 'ERROR' }
const MESSAGE_WIDTH = 17

/**
 * A JSON log line for a person at a terminal: `12:04:12.101 info  request.placed    request=req_8k2m node=box-2 …`.
 * Values with spaces or control characters are quoted, so that one line stays one line.
 */
export const prettyLine = (json: string): string => {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>
  const clock = String(time).slice(11, 23)
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${plain(value)}`)
  return `${clock} ${LEVELS[String(level)] ?? level} ${String(msg).padEnd(MESSAGE_WIDTH)} ${shown.join(' ')}`.trimEnd()
}

const plain = (value: unknown): string => {
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^[^\s"\p{Cc}]+$/u.test(value) ? value : JSON.stringify(value)
}
