import type { Random } from '../../../src/ports/random'
import type { Json } from '../fakes'

/** Values that readers of JSON trip over; each stands for one kind of mistake. */
const ODD: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  Number.MAX_SAFE_INTEGER + 1,
  1e300,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '"',
  '🦙'.repeat(40),
  'x'.repeat(5_000),
  [],
  {},
  [[]],
  [null],
  ['m', 1, {}],
  { type: 'text' },
  { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
  { role: 'tool', content: [] },
]

const KEYS = [
  '',
  '__proto__',
  'constructor',
  'model',
  'stream',
  'messages',
  'role',
  'content',
  'type',
  'input',
  'tools',
]
/** Pieces that mean something to a parser or to a framing. */
const PIECES = ['"', '\\', '\\u', '{', '}', '[', ']', ',', ':', '\n', '\r\n\r\n', 'data: [DONE]\n\n', '1e999', '\u0000']

/** Far deeper than any real body, so that a reader that recurses is found out. */
const DEPTH = 20_000
const HUGE_CHANCE = 0.002

interface Place {
  readonly holder: Json
  readonly key: string | number
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T

/** Every member of every object and array in a value, outermost first. */
const placesIn = (value: Json): Place[] => {
  if (typeof value !== 'object' || value === null) return []
  const keys = Array.isArray(value) ? value.map((_, index) => index) : Object.keys(value)
  return keys.flatMap((key) => [{ holder: value, key }, ...placesIn(value[key])])
}

type Change = (place: Place, random: Random, places: readonly Place[]) => void

const CHANGES: readonly Change[] = [
  ({ holder, key }, random) => {
    holder[key] = structuredClone(pick(random, ODD))
  },
  ({ holder, key }) => {
    if (Array.isArray(holder)) holder.splice(Number(key), 1)
    else delete holder[key]
  },
  ({ holder, key }, random) => {
    if (Array.isArray(holder)) return
    // An own member, also where it is called `__proto__`.
    const own = { value: holder[key], enumerable: true, writable: true, configurable: true }
    Object.defineProperty(holder, pick(random, KEYS), own)
  },
  ({ holder, key }, random, places) => {
    const other = pick(random, places)
    holder[key] = structuredClone(other.holder[other.key])
  },
  ({ holder, key }) => {
    holder[key] = [holder[key], structuredClone(holder[key])]
  },
  ({ holder, key }) => {
    holder[key] = String(holder[key])
  },
]

const withValues = (body: object, random: Random): string => {
  const copy: Json = structuredClone(body)
  const times = 1 + Math.floor(random.next() * 3)
  for (let time = 0; time < times; time += 1) {
    const places = placesIn(copy)
    if (places.length > 0) pick(random, CHANGES)(pick(random, places), random, places)
  }
  return JSON.stringify(copy)
}

const at = (random: Random, text: { readonly length: number }): number => Math.floor(random.next() * (text.length + 1))

/** A piece cut out, doubled or put in, or a byte changed. */
export const mutateText = (text: string, random: Random): Uint8Array => {
  const bytes = Buffer.from(text)
  const [from, to] = [at(random, bytes), at(random, bytes)].toSorted((a, b) => a - b) as [number, number]
  const kind = random.next()
  if (kind < 0.2) return bytes.subarray(0, from)
  if (kind < 0.4) return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)])
  if (kind < 0.5) return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)])
  if (kind < 0.8)
    return Buffer.concat([bytes.subarray(0, from), Buffer.from(pick(random, PIECES)), bytes.subarray(from)])
  const flipped = Buffer.from(bytes)
  const index = Math.min(from, flipped.length - 1)
  if (index >= 0) flipped[index] = Math.floor(random.next() * 256)
  return flipped
}

const deep = (random: Random): string => {
  const open = pick(random, ['[', '{"a":', '{"messages":[', '{"tools":['])
  return `{"model":"m","messages":${open.repeat(DEPTH)}`
}

/** A valid body with some mistakes in it: of values mostly, else of bytes; now and then one that is far too deep. */
export const mutate = (body: object, random: Random): Uint8Array => {
  const kind = random.next()
  if (kind < HUGE_CHANCE) return Buffer.from(deep(random))
  const text = kind < 0.7 ? withValues(body, random) : JSON.stringify(body)
  return kind < 0.55 ? Buffer.from(text) : mutateText(text, random)
}
