import { invalid } from './json/values'

/** Longer than what any engine calls a model, a path on its disk included. */
const maxLength = 1_024
/** Control characters, line ends, and what turns the direction of text: they would forge lines of logs and terminals. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u

/** The name that a client gives a model, as it stands; throws `invalid_request` when it cannot be one. */
export const checkModelName = (name: string): string => {
  if (name.trim() === '') throw invalid('"model" is empty.', 'model')
  if (name.length > maxLength) throw invalid(`"model" is longer than ${maxLength} characters.`, 'model')
  if (unprintable.test(name)) throw invalid('"model" holds a control character.', 'model')
  return name
}
