import { RouterError } from '../../domain/errors'
import { dialectFor } from '../../wire'
import { ps, show, tags } from '../../wire/ollama-models'
import { readBody } from '../body'
import type { ServerDeps } from '../deps'
import { findModel, servable } from '../models'
import type { Call, Route } from '../route'

/** Clients switch features on by this version. */
const ollamaVersion = '0.33.0'
const maxShowBytes = 1_000_000

/** These change the disks of nodes, and which node is meant cannot be said in this protocol. */
const managementPaths: readonly (readonly [Route['method'], string])[] = [
  ['POST', '/api/pull'],
  ['POST', '/api/push'],
  ['POST', '/api/create'],
  ['POST', '/api/copy'],
  ['DELETE', '/api/delete'],
]

/** The model's name in the body of `/api/show`: `model`, or the older `name`. */
const namedIn = (body: Uint8Array): string => {
  let fields: { readonly model?: unknown; readonly name?: unknown } | null
  try {
    fields = JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw new RouterError('invalid_request', 'The request body is not valid JSON.')
  }
  const name = fields?.model || fields?.name
  if (typeof name === 'string') return name
  throw new RouterError('invalid_request', 'model is required', { param: 'model' })
}

/** What Ollama clients ask beside inference, answered from what the nodes last reported. */
export const ollamaRoutes = ({ fleet, clock }: ServerDeps): Route[] => {
  const refuser = dialectFor('/api/tags')
  const route = (method: Route['method'], path: string, access: Route['access'], handle: Route['handle']): Route => ({
    method,
    path,
    access,
    refuser,
    handle,
  })
  const showModel = async ({ request }: Call): Promise<Response> => {
    const name = namedIn(await readBody(request, maxShowBytes))
    return Response.json(show(findModel(fleet.models(), name)))
  }
  const notOffered = ({ path }: Call): Response => {
    throw new RouterError('not_supported', `${path} changes a node's disk and is not offered by the router.`, {
      hint: 'Do it on the node itself; the router sees the change within seconds.',
    })
  }

  return [
    route('GET', '/', 'open', () => new Response('Ollama is running')),
    route('GET', '/api/version', 'open', () => Response.json({ version: ollamaVersion })),
    route('GET', '/api/tags', 'inference', () => Response.json(tags(servable(fleet.models())))),
    route('GET', '/api/ps', 'inference', () => Response.json(ps(fleet.models(), clock.now()))),
    route('POST', '/api/show', 'inference', showModel),
    ...managementPaths.map(([method, path]) => route(method, path, 'inference', notOffered)),
  ]
}
