import { dialectFor } from '../../wire'
import { listModels, oneModel } from '../../wire/openai-models'
import type { ServerDeps } from '../deps'
import { findModel, servable } from '../models'
import { type Route, restOf } from '../route'

const list = '/v1/models'
const one = `${list}/`

/** The model list in OpenAI's shape, from what the nodes last reported: no node is asked. */
export const openaiRoutes = ({ fleet, clock }: ServerDeps): Route[] => {
  const refuser = dialectFor(list)
  // Clients compare entries, so `created` must not change from one list to the next.
  const created = clock.now()
  return [
    {
      method: 'GET',
      path: list,
      access: 'inference',
      refuser,
      handle: () => Response.json(listModels(servable(fleet.models()), created)),
    },
    {
      method: 'GET',
      path: `${one}*`,
      access: 'inference',
      refuser,
      // Ids hold slashes, colons and spaces, percent-encoded or as they are.
      handle: ({ path }) => Response.json(oneModel(findModel(fleet.models(), restOf(path, one)), created)),
    },
  ]
}
