import type { Config, KeyConfig } from '../../src/domain/config'
import { RouterError } from '../../src/domain/errors'
import type { Job } from '../../src/domain/job'
import { mayRun } from '../../src/domain/model-globs'
import type { KeyLimits } from '../../src/placement/key-limits'

/** What the router needs of the configuration to let a request in. */
export type Doors = Pick<Config, 'auth' | 'limits'>

const keyOf = ({ auth }: Doors, { key }: Job): KeyConfig | undefined =>
  key === undefined ? undefined : auth.keys.find(({ name }) => name === key)

const forbidden = (key: string, { asked }: Job): RouterError =>
  new RouterError('forbidden', `The key "${key}" may not use the model '${asked}'.`, {
    param: 'model',
    hint: 'Its "models" in fleet.toml say which it may use; the list of models shows them.',
  })

const MS = 1_000

/**
 * Takes the request in for its key, or says why not: a model that the key may not use, or one of its limits. `firstEnd` is
 * when the first of the key's requests should end, in seconds.
 */
export const admit = (
  doors: Doors,
  keys: KeyLimits,
  job: Job,
  firstEnd: (key: string) => number,
): RouterError | undefined => {
  const known = keyOf(doors, job)
  if (known === undefined) return undefined
  const { name, models, limits } = known
  if (!mayRun(models, [job.asked, ...(job.fallback ?? [])], job.models)) return forbidden(name, job)
  const requestsPerMinute = limits?.requestsPerMinute ?? doors.limits.requestsPerMinute
  const refusal = keys.enter(job.id, name, {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(limits?.concurrent === undefined ? {} : { concurrent: limits.concurrent }),
  })
  if (refusal === undefined) return undefined
  const { limit, most } = refusal
  return limit === 'concurrent'
    ? new RouterError(
        'queue_full',
        `The key "${name}" has ${most} requests in the router, the most that it may have.`,
        {
          retryAfterSeconds: firstEnd(name),
          hint: 'limits.concurrent of the key in fleet.toml.',
        },
      )
    : new RouterError('queue_full', `The key "${name}" has made its ${most} requests of this minute.`, {
        retryAfterSeconds: Math.max(1, Math.ceil(refusal.retryAfterMs / MS)),
        hint: 'limits.requests_per_minute of the key, or of [limits], in fleet.toml.',
      })
}
