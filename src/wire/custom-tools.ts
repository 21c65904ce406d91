/** Tools that take free text: as the functions that chat engines know, and the way back from a call of one. */
import type { Json } from './json/values'
import { compact, isObject, parseReply } from './json/values'

/** As a function such a tool has this one parameter. */
const parameters: Json = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
  required: ['input'],
  additionalProperties: false,
}

export const customArguments = (input: unknown): string => JSON.stringify({ input: String(input ?? '') })

/** The text in the arguments of such a function. Models that take the parameter's name lightly are understood too. */
export const customInput = (argumentsText: string): string => {
  const given = parseReply(argumentsText)
  if (given === undefined) return argumentsText
  if (typeof given.input === 'string') return given.input
  const texts = Object.values(given).filter((value) => typeof value === 'string')
  return texts.length === 1 && texts[0] !== undefined ? texts[0] : argumentsText
}

/** The Responses endpoint has the grammar in `format` itself, the chat endpoint one level deeper. */
const grammarOf = (format: unknown): Json => {
  if (!isObject(format)) return {}
  return isObject(format.grammar) ? format.grammar : format
}

/** No engine here holds the model to a grammar of a tool, so the model has to be told. */
const describe = ({ description, format }: Json): string | undefined => {
  const { syntax, definition } = grammarOf(format)
  const rule = typeof definition === 'string' ? `The input must match this ${syntax ?? ''} grammar:\n${definition}` : ''
  const texts = [description, rule].filter((text) => typeof text === 'string' && text !== '')
  return texts.length === 0 ? undefined : texts.join('\n\n')
}

/** In OpenAI's function form; `tool` has its `description` and `format`. */
export const customFunction = (tool: Json, name: string): Json => ({
  type: 'function',
  function: compact({ name, description: describe(tool), parameters }),
})
