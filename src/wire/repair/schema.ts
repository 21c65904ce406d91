/**
 * Whether a value is what a JSON schema asks for. The schemas come with requests, so a check is bounded in its steps and
 * runs no regular expression of a client: either could keep the router from everybody else. Hence no general validator.
 * What is not checked here (`pattern`, `format`, `if`, …) is left to the client, which has to check it anyway.
 */
import type { Json } from '../json/values'
import { isObject } from '../json/values'

/** What the largest calls need many times over; beyond it are schemas that multiply by themselves. */
const maxSteps = 50_000
/** References that lead in a circle end here. */
const maxDepth = 256

interface Check {
  readonly root: unknown
  stepsLeft: number
}

type Rule = (schema: Json, value: unknown, check: Check, depth: number) => boolean

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const isOf = (type: unknown, value: unknown): boolean => {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'null') return value === null
  return typeof value === type
}

/** `nullable` is OpenAPI's, and found in tools all the same. */
const type: Rule = ({ type: wanted, nullable }, value) => {
  if (wanted === undefined || (nullable === true && value === null)) return true
  return Array.isArray(wanted) ? wanted.some((each) => isOf(each, value)) : isOf(wanted, value)
}

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (typeof one === 'object' && one !== null && JSON.stringify(one) === JSON.stringify(other))

const choice: Rule = (schema, value, check) => {
  const { enum: choices } = schema
  check.stepsLeft -= list(choices).length
  if (Array.isArray(choices) && !choices.some((each) => isSame(each, value))) return false
  return !Object.hasOwn(schema, 'const') || isSame(schema.const, value)
}

/** True where the schema sets no such limit. */
const isAtLeast = (limit: unknown, amount: number): boolean => typeof limit !== 'number' || amount >= limit
const isAtMost = (limit: unknown, amount: number): boolean => typeof limit !== 'number' || amount <= limit

const size: Rule = (schema, value) => {
  if (typeof value === 'number') {
    const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema
    if (typeof above === 'number' && value <= above) return false
    if (typeof below === 'number' && value >= below) return false
    return isAtLeast(minimum, value) && isAtMost(maximum, value)
  }
  if (typeof value === 'string')
    return isAtLeast(schema.minLength, value.length) && isAtMost(schema.maxLength, value.length)
  return !Array.isArray(value) || (isAtLeast(schema.minItems, value.length) && isAtMost(schema.maxItems, value.length))
}

const members: Rule = (schema, value, check, depth) => {
  if (!isObject(value)) return true
  const { required, additionalProperties: others, patternProperties } = schema
  const known = isObject(schema.properties) ? schema.properties : {}
  check.stepsLeft -= list(required).length
  if (!list(required).every((name) => Object.hasOwn(value, String(name)))) return false
  return Object.entries(value).every(([name, member]) => {
    if (Object.hasOwn(known, name)) return isAccepted(known[name], member, check, depth)
    // Which names a pattern means is not found out here.
    return others === undefined || patternProperties !== undefined || isAccepted(others, member, check, depth)
  })
}

const items: Rule = (schema, value, check, depth) => {
  if (!Array.isArray(value)) return true
  const first = list(schema.prefixItems)
  return value.every((item, index) => isAccepted(first[index] ?? schema.items ?? true, item, check, depth))
}

const combined: Rule = ({ allOf, anyOf, oneOf, not }, value, check, depth) => {
  const fits = (schema: unknown): boolean => isAccepted(schema, value, check, depth)
  if (!list(allOf).every(fits)) return false
  if (Array.isArray(anyOf) && !anyOf.some(fits)) return false
  if (Array.isArray(oneOf) && oneOf.filter(fits).length !== 1) return false
  return not === undefined || !fits(not)
}

/** Inside the same schema: `#/$defs/City`. Undefined for what is not there. */
const referred = (root: unknown, reference: unknown): unknown => {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined
  const names = reference.split('/').slice(1)
  return names.reduce<unknown>((at, name) => {
    const plain = name.replaceAll('~1', '/').replaceAll('~0', '~')
    return isObject(at) && Object.hasOwn(at, plain) ? at[plain] : undefined
  }, root)
}

const reference: Rule = ({ $ref }, value, check, depth) =>
  $ref === undefined || isAccepted(referred(check.root, $ref) ?? false, value, check, depth)

const rules: readonly Rule[] = [type, choice, size, members, items, combined, reference]

const isAccepted = (schema: unknown, value: unknown, check: Check, depth: number): boolean => {
  if (typeof schema === 'boolean') return schema
  if (!isObject(schema)) return false
  check.stepsLeft--
  if (depth >= maxDepth) check.stepsLeft = 0
  return rules.every((rule) => check.stepsLeft > 0 && rule(schema, value, check, depth + 1))
}

/** False also for a check that took too many steps, and for schemas that are none. */
export const accepts = (schema: unknown, value: unknown): boolean => {
  const check: Check = { root: schema, stepsLeft: maxSteps }
  const accepted = isAccepted(schema, value, check, 0)
  // Under `not` a check that was given up would look like one that failed.
  return accepted && check.stepsLeft > 0
}
