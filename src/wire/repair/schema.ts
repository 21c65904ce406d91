/**
 * Whether a value is what a JSON schema asks for. The schemas come with requests, so a check is bounded in its steps and
 * runs no regular expression of a client: either could keep the router from everybody else. Hence no general validator.
 * What is not checked here (`pattern`, `format`, `if`, …) is left to the client, which has to check it anyway.
 */
import type { Json } from '../json/values'
import { isObject } from '../json/values'

/** What the largest calls need many times over; beyond it are schemas that multiply by themselves. A tenth of a second. */
const maxSteps = 100_000
/** References that lead in a circle end here. */
const maxDepth = 256
/** Characters. */
const maxReferenceLength = 1_000

interface Check {
  readonly root: unknown
  stepsLeft: number
}

/** Takes the steps of something that is about to be walked through; false once none are left. */
const canTake = (check: Check, steps: number): boolean => {
  check.stepsLeft -= steps
  return check.stepsLeft > 0
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
const type: Rule = ({ type: wanted, nullable }, value, check) => {
  if (wanted === undefined || (nullable === true && value === null)) return true
  if (!Array.isArray(wanted)) return isOf(wanted, value)
  return canTake(check, wanted.length) && wanted.some((each) => isOf(each, value))
}

/** The same JSON value; members may stand in any order. */
const isSame = (one: unknown, other: unknown, check: Check, depth: number): boolean => {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  const [ours, theirs] = [Object.entries(one), new Map(Object.entries(other))]
  if (depth >= maxDepth) check.stepsLeft = 0
  if (!canTake(check, ours.length + theirs.size + 1)) return false
  return (
    Array.isArray(one) === Array.isArray(other) &&
    ours.length === theirs.size &&
    ours.every(([name, member]) => theirs.has(name) && isSame(member, theirs.get(name), check, depth + 1))
  )
}

const choice: Rule = (schema, value, check, depth) => {
  const { enum: choices } = schema
  const isMeant = (each: unknown): boolean => canTake(check, 1) && isSame(each, value, check, depth)
  if (Array.isArray(choices) && !choices.some(isMeant)) return false
  return !Object.hasOwn(schema, 'const') || isMeant(schema.const)
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
  const { required, properties, additionalProperties: others, patternProperties } = schema
  if (!canTake(check, list(required).length)) return false
  if (!list(required).every((name) => typeof name === 'string' && Object.hasOwn(value, name))) return false
  if (properties === undefined && others === undefined) return true
  const known = isObject(properties) ? properties : {}
  const entries = Object.entries(value)
  if (!canTake(check, entries.length)) return false
  return entries.every(([name, member]) => {
    if (Object.hasOwn(known, name)) return isAccepted(known[name], member, check, depth)
    // Which names a pattern means is not found out here.
    return others === undefined || patternProperties !== undefined || isAccepted(others, member, check, depth)
  })
}

const items: Rule = (schema, value, check, depth) => {
  if (!Array.isArray(value)) return true
  const first = list(schema.prefixItems)
  if (first.length === 0 && schema.items === undefined) return true
  if (!canTake(check, value.length)) return false
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
const referred = (check: Check, reference: unknown): unknown => {
  if (typeof reference !== 'string' || !reference.startsWith('#') || reference.length > maxReferenceLength)
    return undefined
  const names = reference.split('/').slice(1)
  if (!canTake(check, names.length)) return undefined
  return names.reduce<unknown>((at, name) => {
    const plain = name.replaceAll('~1', '/').replaceAll('~0', '~')
    return isObject(at) && Object.hasOwn(at, plain) ? at[plain] : undefined
  }, check.root)
}

const reference: Rule = ({ $ref }, value, check, depth) =>
  $ref === undefined || isAccepted(referred(check, $ref) ?? false, value, check, depth)

const rules: readonly Rule[] = [type, choice, size, members, items, combined, reference]

const isAccepted = (schema: unknown, value: unknown, check: Check, depth: number): boolean => {
  if (typeof schema === 'boolean') return schema
  if (!isObject(schema)) return false
  if (depth >= maxDepth) check.stepsLeft = 0
  if (!canTake(check, 1)) return false
  return rules.every((rule) => check.stepsLeft > 0 && rule(schema, value, check, depth + 1))
}

/** False also for a check that took too many steps, and for schemas that are none. */
export const accepts = (schema: unknown, value: unknown): boolean => {
  const check: Check = { root: schema, stepsLeft: maxSteps }
  const accepted = isAccepted(schema, value, check, 0)
  // Under `not` a check that was given up would look like one that failed.
  return accepted && check.stepsLeft > 0
}
