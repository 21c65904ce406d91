/** What endpoints for sound and pictures share. */
import type { Capability, Job } from '../domain/job'
import { laneOf } from '../domain/lanes'
import type { Arrival } from './dialect'
import { checkModelName } from './model-name'

export interface MediaKind {
  /** In the client's terms, for the record. */
  readonly operation: string
  readonly needs: readonly Capability[]
  readonly model: string | undefined
  readonly stream: boolean
}

/** The description of a media request; without a model any that can do it will. */
export const mediaJob = ({ id, at, context }: Arrival, { operation, needs, model, stream }: MediaKind): Job => {
  const isNamed = model !== undefined && model.trim() !== ''
  const asked = isNamed ? checkModelName(model) : laneOf(needs)
  return {
    ...context,
    id,
    dialect: 'openai',
    operation,
    asked,
    models: [asked],
    stream,
    needs,
    ...(isNamed ? {} : { anyModel: true }),
    promptTokens: { value: 0, basis: 'estimated' },
    arrivedAt: at,
  }
}
