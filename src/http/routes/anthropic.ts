import { RouterError } from '../../domain/errors'
import { isMeant } from '../../domain/pin'
import { dialectFor } from '../../wire'
import { readTokenQuestion, type TokenQuestion } from '../../wire/anthropic'
import type { Counted, Holder } from '../../wire/token-count'
import type { Caller } from '../auth'
import { readBody } from '../body'
import type { ServerDeps } from '../deps'
import { headerValue } from '../header-values'
import { findModel, modelsFor } from '../models'
import type { Call, Route } from '../route'

const path = '/v1/messages/count_tokens'

/**
 * What Anthropic clients ask beside inference. Editors send dozens of counts when they start, so one waits for nothing
 * and wakes no model: a node that has it in memory may be asked, else the answer is an estimate.
 */
export const anthropicRoutes = ({ config, fleet, bytesPerToken, countTokens }: ServerDeps): Route[] => {
  /** The nodes that could answer now, each with its own name for the model. */
  const holdersOf = (model: string, pin: string | undefined, caller: Caller | undefined): readonly Holder[] => {
    const online = new Set(fleet.nodes().flatMap(({ name, state }) => (state === 'online' ? [name] : [])))
    const meant = new Map(
      fleet.descriptions().flatMap((node) => (online.has(node.name) && isMeant(node, pin) ? [[node.name, node]] : [])),
    )
    return findModel(modelsFor(fleet, caller), model).nodes.flatMap(({ node: at, name, resident }) => {
      const node = meant.get(at)
      return node && resident?.state === 'ready' ? [{ node, model: name }] : []
    })
  }

  const onNode = async ({ model, prompt }: TokenQuestion, call: Call): Promise<Counted | undefined> => {
    if (!prompt || !countTokens) return undefined
    const { request, caller } = call
    try {
      const pin = request.headers.get('x-fleet-node')?.trim() || undefined
      return await countTokens(holdersOf(model, pin, caller), prompt, request.signal)
    } catch (error) {
      // Whoever asks about a model that is nowhere is told so when they use it.
      if (error instanceof RouterError && error.code === 'model_not_found') return undefined
      throw error
    }
  }

  const count = async (call: Call): Promise<Response> => {
    const { maxBodyBytes, stripBillingHeader } = config.server
    const body = await readBody(call.request, maxBodyBytes, call)
    const question = readTokenQuestion(body, { bytesPerToken, keepBillingHeader: !stripBillingHeader })
    const counted = await onNode(question, call)
    if (!counted) return answer(question.estimate, { 'x-fleet-tokens': 'estimated' })
    return answer(counted.tokens, { 'x-fleet-tokens': 'counted', 'x-fleet-node': headerValue(counted.node) })
  }

  return [{ method: 'POST', path, access: 'inference', refuser: dialectFor(path), handle: count }]
}

const answer = (tokens: number, headers: Readonly<Record<string, string>>): Response =>
  Response.json({ input_tokens: tokens }, { headers })
