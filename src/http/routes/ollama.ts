import { RouterError } from '../../domain/errors'
import { dialectFor } from '../../wire'
import { ps, show, tags } from '../../wire/ollama-models'
import { readBody } from '../body'
import type { ServerDeps } from '../deps'
import { findModel, modelsFor, servable } from '../models'
import type { Call, Route } from '../route'

/** Clients switch features on by this version. */
const ollamaVersion = '0.33.0'
const maxShowBytes = 1_000_000

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
  const showModel = async (call: Call): Promise<Response> => {
    const name = namedIn(await readBody(call.request, maxShowBytes, call))
    return Response.json(show(findModel(modelsFor(fleet, call.caller), name)))
  }
  return [
    route('GET', '/', 'open', () => new Response('Ollama is running')),
    route('GET', '/api/version', 'open', () => Response.json({ version: ollamaVersion })),
    route('GET', '/api/tags', 'inference', ({ caller }) =>
      Response.json(tags(servable(modelsFor(fleet, caller).models()))),
    ),
    route('GET', '/api/ps', 'inference', ({ caller }) =>
      Response.json(ps(modelsFor(fleet, caller).models(), clock.now())),
    ),
    route('POST', '/api/show', 'inference', showModel),
  ]
}
