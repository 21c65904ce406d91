/** Embedding vectors: lists of numbers, or little-endian 32-bit floats in base64 as OpenAI's clients ask for them. */

const bytesPerFloat = 4

export type Vector = readonly number[]

const isNumbers = (value: unknown): value is Vector =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'number')

const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/

export const toBase64 = (vector: Vector): string => {
  const bytes = Buffer.allocUnsafe(vector.length * bytesPerFloat)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * bytesPerFloat)
  return bytes.toString('base64')
}

/** Undefined when the text does not hold whole floats. */
export const fromBase64 = (text: string): Vector | undefined => {
  if (!isBase64.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length % bytesPerFloat !== 0) return undefined
  return Array.from({ length: bytes.length / bytesPerFloat }, (_, index) => bytes.readFloatLE(index * bytesPerFloat))
}

/** A vector in either form; undefined for one that is empty, or none. */
export const readVector = (value: unknown): Vector | undefined => {
  const vector = typeof value === 'string' ? fromBase64(value) : isNumbers(value) ? value : undefined
  return vector === undefined || vector.length === 0 ? undefined : vector
}
