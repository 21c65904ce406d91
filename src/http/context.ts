import type { PriorityConfig } from '../domain/config'
import { RouterError } from '../domain/errors'
import type { Priority } from '../domain/job'
import { POLICY_NAMES, type PolicyName } from '../domain/policies'
import type { Writable } from '../domain/writable'
import type { Arrival } from '../wire/dialect'
import type { Caller } from './auth'
import { standInsOf } from './stand-ins'

const priorities: readonly Priority[] = ['critical', 'normal', 'batch']

/** Characters of a client's own request id that are kept, echoed and searchable. */
const maxClientIdLength = 128
const maxSessionLength = 256
const maxTags = 16
const maxTagLength = 64
/** A deadline further away than a year is no deadline. */
const maxDeadlineSeconds = 31_536_000

const priorityOf = (value: string | null, byDefault: Priority): Priority => {
  if (value === null || value.trim() === '') return byDefault
  const wanted = value.trim().toLowerCase()
  const priority = priorities.find((known) => known === wanted)
  if (priority) return priority
  throw new RouterError('invalid_request', `X-Fleet-Priority must be one of ${priorities.join(', ')}.`, {
    param: 'X-Fleet-Priority',
  })
}

/** A key's own word counts where the request does not say. */
const policyOf = (value: string | null, byDefault: PolicyName | undefined): PolicyName | undefined => {
  const wanted = value?.trim().toLowerCase()
  if (!wanted) return byDefault
  const policy = POLICY_NAMES.find((known) => known === wanted)
  if (policy) return policy
  throw new RouterError('invalid_request', `X-Fleet-Policy must be one of ${POLICY_NAMES.join(', ')}.`, {
    param: 'X-Fleet-Policy',
  })
}

/** The lower of what was asked for and the highest that the key may have. */
export const capped = (asked: Priority, highest: Priority | undefined, { order }: PriorityConfig): Priority =>
  highest !== undefined && order.indexOf(asked) < order.indexOf(highest) ? highest : asked

const deadlineOf = (value: string | null, at: number): number | undefined => {
  if (value === null) return undefined
  const seconds = /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : Number.NaN
  if (seconds > 0 && seconds <= maxDeadlineSeconds) return at + seconds * 1_000
  throw new RouterError('invalid_request', 'X-Fleet-Deadline must be a number of seconds above 0, such as 30 or 2.5.', {
    param: 'X-Fleet-Deadline',
  })
}

const noTags: readonly string[] = []

const tagsOf = (value: string | null): readonly string[] =>
  value === null
    ? noTags
    : value
        .split(',')
        .map((tag) => tag.trim().slice(0, maxTagLength))
        .filter((tag) => tag !== '')
        .slice(0, maxTags)

/** The client's own request id, if it is short and printable enough to be echoed and stored. */
export const clientRequestId = (headers: Headers): string | undefined => {
  const id = headers.get('x-request-id')?.trim()
  return id && id.length <= maxClientIdLength && /^[\x21-\x7e]+$/.test(id) ? id : undefined
}

/** What the `X-Fleet-*` headers and the key say about a request. Throws `invalid_request` naming the header. */
export const contextOf = (
  headers: Headers,
  at: number,
  caller: Caller | undefined,
  priorities: PriorityConfig,
): Arrival['context'] => {
  const pin = headers.get('x-fleet-node')?.trim()
  const session = headers.get('x-fleet-session')?.trim().slice(0, maxSessionLength)
  const clientId = clientRequestId(headers)
  const fallback = standInsOf(headers.get('x-fleet-fallback'))
  const policy = policyOf(headers.get('x-fleet-policy'), caller?.policy)
  const deadlineAt = deadlineOf(headers.get('x-fleet-deadline'), at)
  const context: Writable<Arrival['context']> = {
    priority: capped(priorityOf(headers.get('x-fleet-priority'), priorities.default), caller?.priority, priorities),
    tags: tagsOf(headers.get('x-fleet-tags')),
  }
  if (pin) context.pin = pin
  if (fallback.length > 0) context.fallback = fallback
  if (session) context.session = session
  if (clientId) context.clientRequestId = clientId
  if (deadlineAt !== undefined) context.deadlineAt = deadlineAt
  if (policy !== undefined) context.policy = policy
  if (caller) context.key = caller.name
  return context
}
