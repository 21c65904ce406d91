import type { Config } from '../domain/config'
import { RouterError } from '../domain/errors'
import { type Auth, createAuth, type Caller } from './auth'
import { isForeignPage, isPrivateHost, isTrustedHost } from './origin'
import type { Route } from './route'

interface LocalPeers {
  /** The request comes from this machine. */
  isLocal(request: Request): boolean
}

export interface Guard {
  /** The caller, if the request may pass; throws `loop_detected`, `unauthorized` or `forbidden`. */
  check(route: Route, request: Request, peers: LocalPeers): Caller | undefined
}

/** Routers put their instance id into `X-Fleet-Via`, so a request that carries ours has come back to us. */
const hasBeenHere = (headers: Headers, instance: string): boolean =>
  headers
    .get('x-fleet-via')
    ?.split(',')
    .some((id) => id.trim() === instance) === true

/** The checks before any route. Without keys it is the browser of the machine's user that must not be turned against it. */
export const createGuard = (config: Pick<Config, 'server' | 'auth'>, instance: string): Guard => {
  let keys = config.auth
  let auth = createAuth(keys)

  /** The keys in force: they may be others than at the last request. */
  const currentAuth = (): Auth => {
    if (config.auth !== keys) {
      keys = config.auth
      auth = createAuth(keys)
    }
    return auth
  }

  const checkOpen = (route: Route, request: Request, peers: LocalPeers): void => {
    const host = request.headers.get('host')
    const origin = request.headers.get('origin')
    if (route.method !== 'GET' && origin !== null && isForeignPage(origin, host)) {
      throw new RouterError('forbidden', 'Pages of other sites may not use this router.', {
        hint: 'Set auth.mode = "keys" and give the page a key.',
      })
    }
    if (route.access === 'admin' && !isTrustedHost(host, config.server.host)) {
      throw new RouterError('forbidden', 'This host name may not be used to change anything.', {
        hint: `Use the address of the router, such as http://127.0.0.1:${config.server.port}, or set auth.mode = "keys".`,
      })
    }
    // A page whose name was pointed at this machine (DNS rebinding) is of the same origin, so only its name tells.
    if (route.access !== 'open' && !isPrivateHost(host, config.server.host)) {
      throw new RouterError('forbidden', 'Without keys, this host name may not be used for the router.', {
        hint: `Use the address of the router, such as http://127.0.0.1:${config.server.port}, or set auth.mode = "keys".`,
      })
    }
    if (route.access === 'metrics' && !peers.isLocal(request)) {
      throw new RouterError('forbidden', 'Without keys, metrics are for this machine only.', {
        hint: 'Set auth.mode = "keys" and use a key with the scope "metrics".',
      })
    }
  }

  return {
    check: (route, request, peers) => {
      if (hasBeenHere(request.headers, instance)) {
        throw new RouterError('loop_detected', 'This request has been through this router before.', {
          hint: 'One of the nodes of this router leads back to it; remove it from fleet.toml.',
        })
      }
      if (config.auth.mode === 'open') checkOpen(route, request, peers)
      return currentAuth().admit(route.access, request.headers)
    },
  }
}
