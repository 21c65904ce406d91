import { expect, test } from 'bun:test'
import { accepts } from '../../../../src/wire/repair/schema'

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tree = {
  $ref: '#/$defs/node',
  $defs: {
    node: {
      type: 'object',
      properties: { name: { type: 'string' }, below: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['name'],
    },
  },
}

test.each<[unknown, unknown, boolean]>([
  [city, { city: 'Paris' }, true],
  [city, { city: 7 }, false],
  [city, {}, false],
  [city, [], false],
  [city, { city: 'Paris', more: 1 }, true],
  [{ ...city, additionalProperties: false }, { city: 'Paris', more: 1 }, false],
  [{ ...city, additionalProperties: { type: 'number' } }, { city: 'Paris', more: 1 }, true],
  [{ ...city, additionalProperties: { type: 'number' } }, { city: 'Paris', more: 'x' }, false],
  [{ additionalProperties: false, patternProperties: { '^x': {} } }, { x1: 1 }, true],
  [{ type: ['string', 'null'] }, null, true],
  [{ type: 'string', nullable: true }, null, true],
  [{ type: 'string' }, null, false],
  [{ type: 'integer' }, 3, true],
  [{ type: 'integer' }, 3.5, false],
  [{ type: 'number' }, 3.5, true],
  [{ type: 'boolean' }, 'true', false],
  [{ enum: ['a', 'b'] }, 'b', true],
  [{ enum: ['a', 'b'] }, 'c', false],
  [{ enum: [{ a: 1 }] }, { a: 1 }, true],
  [{ const: 4 }, 4, true],
  [{ const: 4 }, 5, false],
  [{ type: 'array', items: city }, [{ city: 'Paris' }, { city: 'Rome' }], true],
  [{ type: 'array', items: city }, [{ city: 'Paris' }, {}], false],
  [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, ['a', 1, 2], true],
  [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, ['a', 'b'], false],
  [{ minItems: 1 }, [], false],
  [{ maxItems: 1 }, [1, 2], false],
  [{ minLength: 2 }, 'a', false],
  [{ maxLength: 2 }, 'abc', false],
  [{ minimum: 1, maximum: 3 }, 3, true],
  [{ minimum: 1 }, 0, false],
  [{ exclusiveMinimum: 1 }, 1, false],
  [{ exclusiveMaximum: 1 }, 1, false],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, null, true],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 1, false],
  [{ oneOf: [{ type: 'number' }, { type: 'integer' }] }, 1, false],
  [{ allOf: [city, { required: ['zip'] }] }, { city: 'Paris' }, false],
  [{ not: { type: 'string' } }, 'a', false],
  [tree, { name: 'a', below: [{ name: 'b', below: [] }] }, true],
  [tree, { name: 'a', below: [{ below: [] }] }, false],
  [{ $ref: '#/$defs/absent' }, {}, false],
  [{ $ref: 'http://elsewhere/schema.json' }, {}, false],
  [true, { anything: 1 }, true],
  [false, {}, false],
  [{}, { anything: 1 }, true],
  ['no schema', {}, false],
  [{ properties: { toString: { type: 'string' } } }, {}, true],
])('%j takes %j: %p', (schema, value, expected) => {
  expect(accepts(schema, value)).toBe(expected)
})

test('a reference in a circle accepts nothing, and a schema that multiplies by itself is given up soon', () => {
  const circle = { $ref: '#' }
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      `d${at}`,
      { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] },
    ]),
  )
  const start = performance.now()

  expect(accepts(circle, {})).toBe(false)
  expect(accepts({ $ref: '#/$defs/d0', $defs: { ...doubling, d40: true } }, {})).toBe(false)
  expect(accepts({ not: { $ref: '#/$defs/d0' }, $defs: { ...doubling, d40: true } }, {})).toBe(false)
  expect(performance.now() - start).toBeLessThan(1_000)
})

test('an expression of a client is never run', () => {
  const start = performance.now()

  expect(accepts({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(40)}!`)).toBe(true)
  expect(performance.now() - start).toBeLessThan(1_000)
})

const many = (count: number, schema: object): object[] => Array.from({ length: count }, () => schema)
const wide = Object.fromEntries(Array.from({ length: 8_000 }, (_, at) => [`k${at}`, 1]))
const long = Array.from({ length: 30_000 }, () => 1)
const deep = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)

test.each([
  ['many schemas for many members', { allOf: many(20_000, { properties: {} }) }, wide],
  ['many schemas for many items', { allOf: many(20_000, { items: true }) }, long],
  ['many objects to choose from', { enum: many(20_000, { k0: 2 }) }, wide],
  ['a deep value to compare', { const: deep }, structuredClone(deep)],
  ['many types for many items', { items: { type: [...many(50_000, {}), 'number'] } }, long],
  ['many required members', { allOf: many(20_000, { required: Object.keys(wide) }) }, wide],
  ['long references', { items: { $ref: `#/${'a/'.repeat(400)}` }, a: {} }, long],
])('is given up soon, whatever client and model write: %s', (_, schema, value) => {
  const start = performance.now()

  expect(accepts(schema, value)).toBe(false)
  expect(performance.now() - start).toBeLessThan(1_000)
})

test('objects to choose from may have their members in any order, all of them', () => {
  const point = { enum: [{ x: 1, at: [1, { y: 2 }] }] }

  expect(accepts(point, { at: [1, { y: 2 }], x: 1 })).toBe(true)
  expect(accepts(point, { x: 1, at: [1, { y: 3 }] })).toBe(false)
  expect(accepts(point, { x: 1, at: [1, { y: 2 }], more: 1 })).toBe(false)
  expect(accepts(point, { x: 1 })).toBe(false)
  expect(accepts({ const: [] }, {})).toBe(false)
})
