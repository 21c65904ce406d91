import { RouterError } from '../../domain/errors'
import type { Admission } from '../../domain/node'
import type { DecisionRecord } from '../../domain/record'
import type { DecisionQuery } from '../../ports/decisions'
import type { ServerDeps } from '../deps'
import { native as refuser } from '../refuser'
import { type Call, type Route, restOf } from '../route'

const defaultLimit = 50
const maxLimit = 1_000

const verbs: Readonly<Record<string, Admission>> = { pause: 'paused', resume: 'open', drain: 'draining' }

const noSuch = (what: string, name: string): RouterError =>
  new RouterError('not_found', `There is no ${what} "${name}".`)

const limitOf = (value: string | null): number => {
  if (value === null) return defaultLimit
  const limit = /^\d{1,6}$/.test(value) ? Number(value) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw new RouterError('invalid_request', `limit must be a whole number from 1 to ${maxLimit}.`, { param: 'limit' })
}

const queryOf = ({ request }: Call): DecisionQuery => {
  const query = new URL(request.url).searchParams
  const model = query.get('model')
  const node = query.get('node')
  const end = query.get('end')
  const clientRequestId = query.get('client_request_id')
  return {
    limit: limitOf(query.get('limit')),
    ...(model ? { model } : {}),
    ...(node ? { node } : {}),
    ...(end ? { end } : {}),
    ...(clientRequestId ? { clientRequestId } : {}),
  }
}

/** Our own API: what `fleet status` and `fleet explain` read, and the verbs on nodes. */
export const nativeRoutes = ({ fleet, decisions, reload }: ServerDeps): Route[] => {
  const read = (path: string, answer: (call: Call) => unknown): Route => ({
    method: 'GET',
    path: `/api/v1${path}`,
    access: 'read',
    refuser,
    handle: (call) => Response.json(answer(call)),
  })

  const record = (id: string): DecisionRecord => {
    const found =
      id === 'last' ? decisions.last() : (decisions.get(id) ?? decisions.list({ limit: 1, clientRequestId: id })[0])
    if (found) return found
    throw id === 'last' ? new RouterError('not_found', 'There was no request yet.') : noSuch('request', id)
  }

  const setAdmission = (verb: string, admission: Admission): Route => ({
    method: 'POST',
    path: `/api/v1/nodes/:id/${verb}`,
    access: 'admin',
    refuser,
    handle: ({ path }) => {
      const node = restOf(path.slice(0, path.lastIndexOf(`/${verb}`)), '/nodes/')
      if (!fleet.setAdmission(node, admission)) throw noSuch('node', node)
      return Response.json({ node, admission })
    },
  })

  const reloadConfig: Route = {
    method: 'POST',
    path: '/api/v1/config/reload',
    access: 'admin',
    refuser,
    handle: () => {
      if (!reload) throw new RouterError('not_found', 'This router has no configuration file to read again.')
      const reloaded = reload()
      if (reloaded.outcome === 'applied') return Response.json(reloaded)
      const [first] = reloaded.problems
      const message = `${first?.line === undefined ? '' : `Line ${first.line}: `}${first?.message ?? 'The configuration is not valid.'}`
      const fleet = {
        code: 'invalid_request',
        message,
        hint: 'The last good configuration stays; fleet check shows all problems.',
      }
      return Response.json({ ...reloaded, fleet }, { status: 400 })
    },
  }

  return [
    reloadConfig,
    read('/overview', () => fleet.overview()),
    read('/nodes', () => ({ nodes: fleet.nodes() })),
    read('/nodes/*', ({ path }) => {
      const name = restOf(path, '/nodes/')
      const node = fleet.nodes().find((candidate) => candidate.name === name)
      if (node) return { ...node, learned: fleet.learned(name) }
      throw noSuch('node', name)
    }),
    read('/models', () => ({ models: fleet.models() })),
    read('/requests', (call) => ({ requests: decisions.list(queryOf(call)) })),
    read('/requests/*', ({ path }) => record(restOf(path, '/requests/'))),
    read('/queues', () => ({ queues: fleet.queues(), waiters: fleet.waiters() })),
    read('/actors', () => ({ actors: fleet.actors() })),
    ...Object.entries(verbs).map(([verb, admission]) => setAdmission(verb, admission)),
  ]
}
