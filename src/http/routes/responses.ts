import { RouterError } from '../../domain/errors'
import { dialectFor } from '../../wire'
import type { Route } from '../route'

const path = '/v1/responses/*'

const refuse = (): never => {
  throw new RouterError('not_found', 'This router keeps no responses, so there is none to fetch, cancel or delete.', {
    hint: 'Send the whole conversation to POST /v1/responses, with "store": false.',
  })
}

/** What the Responses API has around its one endpoint is about responses that somebody keeps. */
export const responsesRoutes = (): Route[] =>
  (['GET', 'POST', 'DELETE'] as const).map((method) => ({
    method,
    path,
    access: 'inference',
    refuser: dialectFor(path),
    handle: refuse,
  }))
