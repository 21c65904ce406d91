import type { Json } from './json/values'
import { isObject } from './json/values'

/** Arguments as JSON text; some nodes and clients send the object itself. */
export const argumentsText = (value: unknown): string => {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/** Arguments as the object that object protocols demand; what is no object is kept under `_raw`. */
export const argumentsObject = (text: string): Json => {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : { _raw: text }
  } catch {
    return { _raw: text }
  }
}

/** An id for a call that the node left without one: stable, since the same request always counts the same way. */
export const callId = (request: string, index: number): string => `call_${request.replace(/^req_/, '')}_${index}`
