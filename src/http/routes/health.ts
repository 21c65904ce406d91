import { RouterError } from '../../domain/errors'
import type { ServerDeps } from '../deps'
import { native as refuser } from '../refuser'
import type { Route } from '../route'

/** Why the router should get no traffic yet, or undefined when it is ready. */
const notReady = ({ fleet, config }: ServerDeps): string | undefined => {
  const { draining, healthyNodes } = fleet.overview()
  if (draining) return 'the router is shutting down'
  if (!fleet.ready()) return 'no node has answered yet'
  if (healthyNodes === 0 && !config.discovery.local) return 'no node is online'
  return undefined
}

/** Liveness and readiness for whatever watches the process, and the metrics. */
export const healthRoutes = (deps: ServerDeps): Route[] => {
  const { instance, version, metrics, config } = deps
  return [
    {
      method: 'GET',
      path: '/healthz',
      access: 'open',
      refuser,
      handle: () => Response.json({ status: 'alive', instance, version }),
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'open',
      refuser,
      handle: () => {
        const reason = notReady(deps)
        return reason === undefined
          ? Response.json({ status: 'ready' })
          : Response.json({ status: 'not_ready', reason }, { status: 503 })
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'metrics',
      refuser,
      handle: async () => {
        if (!metrics || !config.metrics.enabled) {
          throw new RouterError('not_found', 'Metrics are off.', { hint: 'Set metrics.enabled = true in fleet.toml.' })
        }
        return new Response(await metrics.expose(), { headers: { 'content-type': metrics.contentType } })
      },
    },
  ]
}
