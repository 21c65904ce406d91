import { dialectFor } from '../wire'
import { isAnthropicClient } from '../wire/anthropic-models'
import { errorResponse } from '../wire/errors'
import type { Refuser } from './route'

/** Errors of our own API. */
export const native: Refuser = { refuse: (error) => errorResponse('native', error) }

/** On the paths of the model list it is the headers that tell whose client asks. */
export const modelsRefuser: Refuser = {
  refuse: (error, request) =>
    errorResponse(request && isAnthropicClient(request.headers) ? 'anthropic' : 'openai', error),
}

const ownPaths = /^\/(api\/v1(\/|$)|healthz$|readyz$|metrics$)/

/** Whose error shape a path gets when no route of ours has it. */
export const refuserFor = (path: string): Refuser => (ownPaths.test(path) ? native : dialectFor(path))
