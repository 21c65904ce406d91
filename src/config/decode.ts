import { type Decoded, formats, type Refused } from './formats'
import { nearest } from '../domain/nearest'
import type { ProblemCode } from './problem'
import type { LeafShape, NumberShape, WordShape } from './shape'
import type { Scalar } from './tree'

/** The value that a scalar has for a key of this shape, or what is wrong with it. */
export const decode = (shape: LeafShape, scalar: Scalar): Decoded => {
  if (shape.type === 'boolean') return decodeBoolean(scalar)
  if (shape.type !== 'string') return decodeNumber(shape, scalar)
  if ('enum' in shape) return decodeWord(shape, scalar)
  const isText = typeof scalar.value === 'string' && scalar.kind !== 'other'
  return isText ? formats[shape.format](String(scalar.value), shape) : mustBe('text in quotes', scalar)
}

const mustBe = (rule: string, scalar: Scalar, code: ProblemCode = 'wrong_type'): Refused => ({
  ok: false,
  code,
  says: `must be ${rule}, not ${show(scalar)}`,
})

const show = ({ kind, value }: Scalar): string =>
  kind === 'string' || kind === 'raw' ? JSON.stringify(value) : String(value)

const decodeBoolean = (scalar: Scalar): Decoded => {
  if (scalar.kind === 'boolean') return { ok: true, value: scalar.value }
  if (scalar.kind === 'raw' && (scalar.value === 'true' || scalar.value === 'false')) {
    return { ok: true, value: scalar.value === 'true' }
  }
  return mustBe('true or false', scalar)
}

/** Variables take plain ASCII digits only: no sign other than a leading `-`, no exponent, no spaces, no unit. */
const PLAIN_NUMBER = /^-?\d+(?:\.\d+)?$/

const decodeNumber = (shape: NumberShape, scalar: Scalar): Decoded => {
  const value = numberIn(scalar, shape.type)
  const rule = numberRule(shape)
  if (value === undefined || !Number.isFinite(value)) return mustBe(rule, scalar)
  const isInRange =
    value <= shape.maximum && value >= (shape.minimum ?? -Infinity) && value > (shape.exclusiveMinimum ?? -Infinity)
  return isInRange ? { ok: true, value } : mustBe(rule, scalar, 'out_of_range')
}

const numberIn = ({ kind, value }: Scalar, type: NumberShape['type']): number | undefined => {
  if (kind === 'integer') return Number(value)
  if (kind === 'float') return type === 'number' ? Number(value) : undefined
  if (kind !== 'raw' || !PLAIN_NUMBER.test(String(value))) return undefined
  const number = Number(value)
  return type === 'number' || !String(value).includes('.') ? number : undefined
}

const numberRule = ({ type, minimum, exclusiveMinimum, maximum }: NumberShape): string => {
  if (minimum === maximum) return String(minimum)
  const noun = type === 'integer' ? 'a whole number' : 'a number'
  const range = exclusiveMinimum === undefined ? `from ${minimum}` : `above ${exclusiveMinimum} and up`
  return `${noun} ${range} to ${maximum} in plain digits`
}

const decodeWord = (shape: WordShape, scalar: Scalar): Decoded => {
  const allowed = `allowed: ${shape.enum.join(', ')}`
  if (scalar.kind !== 'string' && scalar.kind !== 'raw')
    return { ...mustBe('a word in quotes', scalar), notes: [allowed] }
  const word = String(scalar.value)
  if (shape.enum.includes(word)) return { ok: true, value: word }
  if (shape.later?.includes(word)) {
    return {
      ok: false,
      code: 'not_in_this_version',
      message: `${shape.noun.split(' ')[0]} "${word}" is not in this version`,
      notes: [allowed],
    }
  }
  const suggestion = nearest(word, shape.enum)
  return {
    ok: false,
    code: 'unknown_value',
    message: `${JSON.stringify(word)} is not a ${shape.noun}`,
    notes: [allowed],
    ...(suggestion === undefined ? {} : { suggestion }),
  }
}
