import type { KeyConfig } from '../../domain/config'
import type { KeyView } from '../../ports/usage'
import type { ServerDeps } from '../deps'
import { native as refuser } from '../refuser'
import type { Route } from '../route'

/** The callers' keys, for whoever administers the router. */
export const keyRoutes = ({ config, fleet, usage }: ServerDeps): Route[] => {
  const view = ({ sha256: _, ...key }: KeyConfig): KeyView => ({
    ...key,
    running: fleet.running(key.name),
    usage: usage.of(key.name),
  })
  return [
    {
      method: 'GET',
      path: '/api/v1/keys',
      access: 'admin',
      refuser,
      handle: () => Response.json({ keys: config.auth.keys.map(view) }),
    },
  ]
}
