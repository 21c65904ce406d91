/** The model list as Anthropic clients read it; each entry is one of OpenAI's list too, since both ask on one path. */
import type { ModelView } from '../ports/fleet'
import type { Json } from './json/values'
import { invalid } from './json/values'
import { loadedContext, maxContext } from './models'
import { oneModel } from './openai-models'
import { rfc3339 } from './time'

/** Also the default: a client of the other protocol that happens to look like one of this asks for no second page. */
const maxLimit = 1_000

/** True when the headers are those of an Anthropic client. */
export const isAnthropicClient = (headers: Headers): boolean =>
  headers.has('anthropic-version') || headers.has('x-api-key')

/** `now` in ms since the epoch. `capabilities` means something else in the other list, and stays unsaid. */
export const oneAnthropicModel = (model: ModelView, now: number): Json => ({
  ...oneModel(model, now),
  type: 'model',
  display_name: model.name,
  created_at: rfc3339(now),
  max_input_tokens: loadedContext(model) ?? maxContext(model) ?? null,
  max_tokens: null,
  capabilities: null,
})

const limitOf = (value: string | null): number => {
  if (value === null) return maxLimit
  const limit = /^\d{1,4}$/.test(value) ? Number(value) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw invalid(`"limit" must be a whole number from 1 to ${maxLimit}.`, 'limit')
}

/** The models from `from` up to `to` that the query asks for; an id that is not in the list stands for its edge. */
const page = (models: readonly ModelView[], query: URLSearchParams): readonly [from: number, to: number] => {
  const limit = limitOf(query.get('limit'))
  const at = (name: string): number => models.findIndex((model) => model.name === query.get(name))
  const before = at('before_id')
  if (before >= 0) return [Math.max(0, before - limit), before]
  const from = at('after_id') + 1
  return [from, Math.min(models.length, from + limit)]
}

/** `GET /v1/models` with `limit`, `after_id` and `before_id`. Throws `invalid_request`. */
export const listAnthropicModels = (models: readonly ModelView[], now: number, query: URLSearchParams): Json => {
  const [from, to] = page(models, query)
  const data = models.slice(from, to)
  return {
    object: 'list',
    data: data.map((model) => oneAnthropicModel(model, now)),
    has_more: query.has('before_id') ? from > 0 : to < models.length,
    first_id: data[0]?.name ?? null,
    last_id: data.at(-1)?.name ?? null,
  }
}
