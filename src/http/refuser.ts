import { dialectFor } from '../wire'
import { errorResponse } from '../wire/errors'
import type { Refuser } from './route'

/** Errors of our own API. */
export const native: Refuser = { refuse: (error) => errorResponse('native', error) }

const ownPaths = /^\/(api\/v1(\/|$)|healthz$|readyz$|metrics$)/

/** Whose error shape a path gets when no route of ours has it. */
export const refuserFor = (path: string): Refuser => (ownPaths.test(path) ? native : dialectFor(path))
