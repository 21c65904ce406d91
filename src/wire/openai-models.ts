import type { ModelView } from '../ports/fleet'
import type { Json } from './json/values'
import { compact } from './json/values'
import { capabilitiesOf, loadedContext, maxContext } from './models'

/** An entry of `GET /v1/models`, and the answer of `GET /v1/models/{id}`. `now` in ms since the epoch. */
export const oneModel = (model: ModelView, now: number): Json => {
  const capabilities = capabilitiesOf(model)
  const window = loadedContext(model) ?? maxContext(model)
  return compact({
    id: model.name,
    object: 'model',
    created: Math.floor(now / 1_000),
    owned_by: 'fleet',
    // Clients look for the window under different names.
    context_length: window,
    max_model_len: window,
    max_context_length: maxContext(model),
    capabilities,
    architecture: capabilities && {
      input_modalities: capabilities.includes('vision') ? ['text', 'image'] : ['text'],
      output_modalities: ['text'],
    },
  })
}

/** `GET /v1/models`. `now` in ms since the epoch; the same value each time keeps `created` stable. */
export const listModels = (models: readonly ModelView[], now: number): Json => ({
  object: 'list',
  data: models.map((model) => oneModel(model, now)),
})
