import type { Json } from './json/values'
import { invalid, numberAt } from './json/values'

/** Numbers that OpenAI-speaking servers (some as extensions) and Ollama's `options` call by the same name. */
const sharedNames = [
  'temperature',
  'top_p',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'top_k',
  'min_p',
  'typical_p',
  'repeat_penalty',
  'repeat_last_n',
] as const

/** `path` names the object in error messages, with its dot (`options.`). */
export const readSampling = (json: Json, path = ''): Record<string, number> => {
  const sampling: Record<string, number> = {}
  for (const name of sharedNames) {
    const value = numberAt(json, name, `${path}${name}`)
    if (value !== undefined) sampling[name] = value
  }
  return sampling
}

/** `stop` as a string, a list of strings, or absent. */
export const readStop = (stop: unknown, param: string): readonly string[] => {
  if (stop === undefined || stop === null) return []
  const list = Array.isArray(stop) ? stop : [stop]
  if (list.every((entry): entry is string => typeof entry === 'string')) return list
  throw invalid(`"${param}" must be a string or a list of strings.`, param)
}
