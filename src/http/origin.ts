/** Which web pages and which host names may talk to the router; see `guard.ts` for where it matters. */

/** The last one, with its host: nearly all requests come under the same name. */
let seen = { authority: '', host: '' }

const hostOf = (authority: string): string => {
  if (authority !== seen.authority) {
    const url = URL.parse(`http://${authority}`)
    seen = { authority, host: url?.hostname.toLowerCase() ?? '' }
  }
  return seen.host
}

const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/

const isLiteral = (host: string): boolean => host.startsWith('[') || ipv4.test(host)

const isLocalName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')

const isLoopbackHost = (host: string): boolean =>
  isLocalName(host) || host === '[::1]' || (ipv4.test(host) && host.startsWith('127.'))

/** True for `127.0.0.0/8` and `::1`, also in their IPv4-mapped form, as a peer address. */
export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || address.replace(/^::ffff:/i, '').startsWith('127.')

/**
 * True for pages on a loopback host, and for pages on the very host that the request was sent to, whatever their ports.
 * An opaque origin (`null`) is never allowed: any page can get one from a sandboxed frame.
 */
export const isAllowedOrigin = (origin: string, hostHeader: string | null): boolean => {
  const url = URL.parse(origin)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
  const host = url.hostname.toLowerCase()
  return isLoopbackHost(host) || (hostHeader !== null && host === hostOf(hostHeader))
}

/** A page of a foreign site: neither allowed, nor an application with a scheme of its own (a browser extension, an app). */
export const isForeignPage = (origin: string, hostHeader: string | null): boolean =>
  (origin === 'null' || /^https?:/i.test(origin)) && !isAllowedOrigin(origin, hostHeader)

/** Ends of names that the public DNS does not hand out, so that no foreign page can have one. */
const privateEnds: readonly string[] = ['.localhost', '.local', '.internal', '.home.arpa', '.lan']

/**
 * The Host values that no page of a foreign site can have, also not by pointing its own name at this machine (DNS
 * rebinding). Browsers always send one.
 */
export const isPrivateHost = (hostHeader: string | null, listener: string): boolean => {
  if (hostHeader === null || isTrustedHost(hostHeader, listener)) return true
  const host = hostOf(hostHeader)
  return host !== '' && (!host.includes('.') || privateEnds.some((end) => host.endsWith(end)))
}

/** The Host values that no rebound DNS name can have: address literals, `localhost`, and the listener's own name. */
export const isTrustedHost = (hostHeader: string | null, listener: string): boolean => {
  if (hostHeader === null) return false
  const host = hostOf(hostHeader)
  return isLiteral(host) || isLocalName(host) || host === listener.toLowerCase()
}
