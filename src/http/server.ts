import type { Server } from 'bun'
import { Elysia } from 'elysia'
import { RouterError } from '../domain/errors'
import { createAnswer } from './answer'
import type { ServerDeps } from './deps'
import { createFallback } from './fallback'
import { isLoopbackAddress } from './origin'
import { native } from './refuser'
import type { Route } from './route'
import { createRoutes } from './routes'

/** Seconds that a connection may be silent unless an answer takes longer; Bun's largest value. */
const idleSeconds = 255

export interface HttpServer {
  /** Binds the configured address; rejects when it is taken. */
  listen(): Promise<{ readonly url: string; readonly port: number }>
  /** Takes no more connections; with `force` it also cuts those that are open. */
  stop(force: boolean): Promise<void>
  /** The same answers without a socket. */
  handle(request: Request): Promise<Response>
}

/** Paths of one route as clients write them; several put the base path `/v1` twice. */
const spellings = (path: string): string[] => {
  const exact = path.startsWith('/v1/') ? [path, `/v1${path}`] : [path]
  return exact.flatMap((one) => (one.endsWith('/') || one.endsWith('*') ? [one] : [one, `${one}/`]))
}

/**
 * Where the Host is none, Bun's URL is the bare path, and the search for its beginning would take a later slash for it:
 * routes would answer under paths that a proxy in front of us does not know. One part alone cannot be mistaken.
 */
const isAddressed = ({ url }: Request): boolean => !url.startsWith('/') || url.lastIndexOf('/') === 0

const misaddressed = (): Response =>
  native.refuse(new RouterError('invalid_request', 'The Host header is missing or is no host.'))

/** The whole HTTP side: every dialect's endpoints, model lists, the native API, health, on one listener. */
export const createServer = (deps: ServerDeps): HttpServer => {
  let server: Server<undefined> | undefined

  const isLocalPeer = (request: Request): boolean => {
    const address = server?.requestIP(request)?.address
    return address === undefined || isLoopbackAddress(address)
  }
  const hangUp = (request: Request): void => server?.timeout(request, 1)
  const setPatience = (request: Request, isPatient: boolean): void =>
    server?.timeout(request, isPatient ? 0 : idleSeconds)
  const answer = createAnswer(deps, { isLocal: isLocalPeer, hangUp, setPatience })
  const routes = createRoutes(deps)

  // Routes own their bytes and their errors: Elysia neither parses bodies nor shapes answers.
  const app = new Elysia({ handler: { standardHostname: false }, strictPath: true })
  const add = (route: Route): void => {
    const handler = ({ request }: { request: Request }): Promise<Response> => answer(route, request)
    // A GET route answers HEAD too.
    for (const path of spellings(route.path)) app.route(route.method, path, handler, { parse: 'none' })
  }
  routes.forEach(add)
  const fallback = createFallback(routes)
  app.all('/*', ({ request }) => answer(fallback(request), request), { parse: 'none' })

  return {
    handle: (request) => Promise.resolve(app.handle(request)),
    listen: async () => {
      const { host, port } = deps.config.server
      server = Bun.serve({
        hostname: host,
        port,
        development: false,
        // Without development mode Bun shares the port: a second router would silently take half of the requests.
        reusePort: false,
        idleTimeout: idleSeconds,
        // Ours is lower and is answered in the client's dialect.
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        fetch: (request) => (isAddressed(request) ? app.fetch(request) : misaddressed()),
      })
      return { url: server.url.origin, port: server.port ?? port }
    },
    stop: async (force) => server?.stop(force),
  }
}
