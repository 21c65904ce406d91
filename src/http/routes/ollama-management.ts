import { RouterError } from '../../domain/errors'
import type { NodeDescription } from '../../domain/node'
import { isMeant } from '../../domain/pin'
import { dialectFor } from '../../wire'
import type { ManagementRoute } from '../../wire/ollama-management'
import { ollamaManagement } from '../../wire/ollama-management'
import { readBody } from '../body'
import { contextOf } from '../context'
import type { ServerDeps } from '../deps'
import type { Call, Route } from '../route'
import { toResponse } from './inference'

/** These change the disk of a node, so there must be no doubt which one. Throws `not_supported`. */
const targetOf = (nodes: readonly NodeDescription[], path: string, pin: string | undefined): NodeDescription => {
  const able = nodes.filter(({ kind }) => kind === 'ollama')
  const [only, ...others] = able.filter((node) => isMeant(node, pin))
  if (only && others.length === 0) return only
  const why =
    able.length === 0
      ? 'and no node runs Ollama'
      : pin === undefined
        ? 'and several nodes run Ollama'
        : `and X-Fleet-Node does not name one Ollama node ('${pin}')`
  throw new RouterError('not_supported', `${path} changes the disk of one node, ${why}.`, {
    hint: `Name the node in X-Fleet-Node: ${able.map(({ name }) => name).join(', ') || 'there is none'}.`,
  })
}

/** Pulling, creating, copying and deleting models on one node: an operator's work, sent once and never again. */
export const managementRoutes = ({ config, fleet, manage }: ServerDeps): Route[] => {
  const refuser = dialectFor('/api/pull')

  const serve = async ({ decode }: ManagementRoute, call: Call): Promise<Response> => {
    const { id, at, path, request, caller } = call
    const { headers } = request
    const context = contextOf(headers, at, caller, config.priorities)
    const node = targetOf(fleet.descriptions(), path, context.pin)
    const body = await readBody(request, config.server.maxBodyBytes, call)
    call.received()
    const reply = await manage(decode({ id, at, path, headers, body, context }, node.name), node, request.signal)
    return toResponse(reply, call)
  }

  return ollamaManagement.map((route) => ({
    method: route.method,
    path: route.path,
    access: 'admin',
    refuser,
    patient: true,
    handle: (call) => serve(route, call),
  }))
}
