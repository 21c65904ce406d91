import { isAllowedOrigin } from './origin'

const token = /^[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/i
const maxRequestedHeaders = 64
const preflightSeconds = 600

const exposed = [
  'x-request-id',
  'request-id',
  'x-client-request-id',
  'x-fleet-instance',
  'x-fleet-node',
  'x-fleet-model',
  'x-fleet-why',
  'x-fleet-residency',
  'x-fleet-score',
  'x-fleet-signals',
  'x-fleet-retries',
  'x-fleet-warning',
  'x-fleet-tokens',
  'server-timing',
  'retry-after',
].join(', ')

const allowedOrigin = (request: Request): string | undefined => {
  const origin = request.headers.get('origin')
  return origin !== null && isAllowedOrigin(origin, request.headers.get('host')) ? origin : undefined
}

/** Marks an answer as readable by the page that asked, if that page may. Credentials are never allowed, so no cookies. */
export const addCors = (request: Request, headers: Headers): void => {
  if (!request.headers.has('origin')) return
  headers.append('vary', 'Origin')
  const origin = allowedOrigin(request)
  if (origin === undefined) return
  headers.set('access-control-allow-origin', origin)
  headers.set('access-control-expose-headers', exposed)
}

/** Answers `OPTIONS`: 204 always, with the requested headers echoed to allowed origins only. Needs no key. */
export const preflight = (request: Request, methods: readonly string[]): Response => {
  const allow = [...methods, 'OPTIONS'].join(', ')
  const headers = new Headers({ allow })
  if (allowedOrigin(request) !== undefined && request.headers.has('access-control-request-method')) {
    const requested = (request.headers.get('access-control-request-headers') ?? '')
      .split(',')
      .map((name) => name.trim().toLowerCase())
      .filter((name) => token.test(name))
      .slice(0, maxRequestedHeaders)
    headers.set('access-control-allow-methods', allow)
    if (requested.length > 0) headers.set('access-control-allow-headers', requested.join(', '))
    headers.set('access-control-max-age', String(preflightSeconds))
  }
  return new Response(null, { status: 204, headers })
}
