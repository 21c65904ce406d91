import { dialectFor } from '../../wire'
import { countTokens } from '../../wire/anthropic'
import { readBody } from '../body'
import type { ServerDeps } from '../deps'
import type { Call, Route } from '../route'

const path = '/v1/messages/count_tokens'

/** What Anthropic clients ask beside inference, answered here: editors send dozens of counts when they start. */
export const anthropicRoutes = ({ config }: ServerDeps): Route[] => [
  {
    method: 'POST',
    path,
    access: 'inference',
    refuser: dialectFor(path),
    handle: async ({ request }: Call) =>
      Response.json(countTokens(await readBody(request, config.server.maxBodyBytes))),
  },
]
