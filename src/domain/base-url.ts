/** Where a node's server starts, or why the text does not say so. */
export type BaseUrl = { readonly url: string } | { readonly problem: string }

const API_SUFFIX = /\/(?:v1|api)$/i
const UNSPECIFIED_HOSTS = new Set(['0.0.0.0', '[::]'])

const withScheme = (text: string): string => (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`)

/**
 * The server root of a node: scheme `http` where none is given, no trailing slash, no `/v1` or `/api` at the end
 * (engines' own documentation gives both forms). A folder in front of that stays. Never throws, never does IO.
 */
export const normalizeBaseUrl = (text: string): BaseUrl => {
  if (text.trim() === '') return { problem: 'is empty' }
  const parsed = URL.parse(withScheme(text.trim()))
  if (!parsed?.hostname) return { problem: 'is not a URL' }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    return { problem: 'must start with http:// or https://' }
  if (parsed.username || parsed.password) return { problem: 'must not contain a user or password; use key_env' }
  if (parsed.search || parsed.hash) return { problem: 'must not contain ? or #' }
  if (parsed.port === '0') return { problem: 'must not use port 0' }
  if (UNSPECIFIED_HOSTS.has(parsed.hostname)) {
    return {
      problem: `names every address of a machine (${parsed.hostname}); use 127.0.0.1 or the machine's own address`,
    }
  }
  const folder = parsed.pathname.replace(/\/+$/, '').replace(API_SUFFIX, '').replace(/\/+$/, '')
  return { url: `${parsed.protocol}//${parsed.host}${folder}` }
}

/** The host of a URL or a listener is this machine's own loopback: `localhost`, `127.0.0.0/8`, `::1`. */
export const isLoopbackHost = (host: string): boolean => {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase()
  return bare === 'localhost' || bare === '::1' || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(bare)
}

/** Equal for two normalized base URLs that reach the same server: all names of the loopback are one. */
export const serverKey = (url: string): string => {
  const parsed = new URL(url)
  const port = parsed.port || (parsed.protocol === 'https:' ? '443' : '80')
  const host = isLoopbackHost(parsed.hostname) ? 'loopback' : parsed.hostname
  return `${parsed.protocol}//${host}:${port}${parsed.pathname.replace(/\/+$/, '')}`
}
