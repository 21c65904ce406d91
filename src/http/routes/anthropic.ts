import { dialectFor } from '../../wire'
import { countTokens } from '../../wire/anthropic'
import { readBody } from '../body'
import type { ServerDeps } from '../deps'
import type { Call, Route } from '../route'

const path = '/v1/messages/count_tokens'

/** What Anthropic clients ask beside inference, answered here: editors send dozens of counts when they start. */
export const anthropicRoutes = ({ config, bytesPerToken }: ServerDeps): Route[] => {
  const count = async ({ request }: Call): Promise<Response> =>
    Response.json(countTokens(await readBody(request, config.server.maxBodyBytes), bytesPerToken))
  return [{ method: 'POST', path, access: 'inference', refuser: dialectFor(path), handle: count }]
}
