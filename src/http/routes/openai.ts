import { modelsRefuser } from '../refuser'
import { isAnthropicClient, listAnthropicModels, oneAnthropicModel } from '../../wire/anthropic-models'
import { listModels, oneModel } from '../../wire/openai-models'
import type { ServerDeps } from '../deps'
import { findModel, modelsFor, servable } from '../models'
import { type Route, restOf } from '../route'

const list = '/v1/models'
const one = `${list}/`

/** The model list from what the nodes last reported: no node is asked. Anthropic clients find theirs on the same paths. */
export const openaiRoutes = ({ fleet, clock }: ServerDeps): Route[] => {
  const refuser = modelsRefuser
  // Clients compare entries, so `created` must not change from one list to the next.
  const created = clock.now()
  return [
    {
      method: 'GET',
      path: list,
      access: 'inference',
      refuser,
      handle: ({ request, caller }) => {
        const models = servable(modelsFor(fleet, caller).models())
        if (!isAnthropicClient(request.headers)) return Response.json(listModels(models, created))
        return Response.json(listAnthropicModels(models, created, new URL(request.url).searchParams))
      },
    },
    {
      method: 'GET',
      path: `${one}*`,
      access: 'inference',
      refuser,
      // Ids hold slashes, colons and spaces, percent-encoded or as they are.
      handle: ({ path, request, caller }) => {
        const model = findModel(modelsFor(fleet, caller), restOf(path, one))
        return Response.json((isAnthropicClient(request.headers) ? oneAnthropicModel : oneModel)(model, created))
      },
    },
  ]
}
