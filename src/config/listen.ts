import { isIP } from 'node:net'

export interface Listener {
  readonly host: string
  readonly port: number
}

const HOST_NAME = /^(?=.*[a-z])[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i
const LARGEST_PORT = 65_535

/**
 * `127.0.0.1:11435`, `[::1]:11435`, `router.lan:11435`, or `:11435` for every address of the machine. Port 0 takes a
 * free one. Undefined when it is none of these.
 */
export const parseListener = (text: string): Listener | undefined => {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  if (!match) return undefined
  const [, bracketed, plain = '', digits] = match
  const port = Number(digits)
  if (port > LARGEST_PORT) return undefined
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? { host: bracketed, port } : undefined
  if (plain === '') return { host: '0.0.0.0', port }
  return isIP(plain) === 4 || HOST_NAME.test(plain) ? { host: plain, port } : undefined
}
