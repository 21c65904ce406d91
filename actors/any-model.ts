import { type Job, modelKey } from '../src/domain/job'
import type { NodeDescription, StoredModel } from '../src/domain/node'
import type { Roster } from './roster'

/** What a model is not known to lack is not enough here: nobody asked for this one. */
const isFor = ({ roles }: NodeDescription, { capabilities = roles }: StoredModel, { needs }: Job): boolean =>
  capabilities !== undefined && needs.every((need) => capabilities.includes(need))

/** A job without a model, with every model of the fleet that is known to do what it needs. */
export const withAnyModel = (job: Job, roster: Roster): Job => {
  const models = new Map<string, string>()
  for (const { description, inventory } of roster.members()) {
    for (const stored of inventory?.values() ?? [])
      if (isFor(description, stored, job)) models.set(modelKey(stored.name), stored.name)
  }
  return { ...job, models: [...models.values()] }
}
