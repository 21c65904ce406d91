import { type Capability, modelKey } from '../domain/job'
import type { NodeReport, StoredModel } from '../domain/node'
import type { NodeDialect } from '../wire/exchange'
import type { NodeAdapter } from './adapter'
import { nativeDialects } from './native'

/** What a node last told of itself, as far as it decides how a request is put to it. */
export class Told {
  readonly #version: string | undefined
  /** By its name and by the key of its name: the first of those that are one model. */
  readonly #models = new Map<string, StoredModel>()
  #adapter: NodeAdapter | undefined
  #native: readonly NodeDialect[] = []

  constructor({ version, models }: NodeReport) {
    this.#version = version
    for (const model of models) {
      const key = modelKey(model.name)
      const first = this.#models.get(key) ?? model
      this.#models.set(key, first)
      this.#models.set(model.name, first)
    }
  }

  /** The dialects that it speaks. */
  native(adapter: NodeAdapter): readonly NodeDialect[] {
    if (adapter !== this.#adapter) {
      this.#adapter = adapter
      this.#native = nativeDialects(adapter, this.#version)
    }
    return this.#native
  }

  /** What the model can do there, where the node tells. */
  capabilities(model: string): readonly Capability[] | undefined {
    return (this.#models.get(model) ?? this.#models.get(modelKey(model)))?.capabilities
  }
}
