/** Calls in answers of OpenAI's chat endpoint, for repair. */
import { decode, encode } from '../bytes'
import type { ReplyEvent } from '../canonical'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { createCallReader } from '../openai-reader'
import { errorOf } from '../replies'
import type { Repair } from './repair'
import { isCut } from './repair'
import type { CallNews, CallReader, Piece } from './records'

const nothing: CallNews = { pieces: [] }

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const endOf = ({ finish_reason: reason }: Json, delta: Json): Pick<CallNews, 'ends'> => {
  if (isText(reason)) return { ends: isCut(reason) ? 'cut' : 'whole' }
  return [delta.content, delta.reasoning_content, delta.reasoning].some(isText) ? { ends: 'whole' } : {}
}

const pieceOf = (event: ReplyEvent | undefined): Piece | undefined => {
  if (event?.type === 'call') return { call: event.index, text: event.arguments }
  return event?.type === 'arguments' ? { call: event.index, text: event.fragment } : undefined
}

const withArguments = (fragment: unknown, text: string): unknown => {
  if (!isObject(fragment)) return fragment
  return { ...fragment, function: { ...(isObject(fragment.function) && fragment.function), arguments: text } }
}

/** Events of a stream with one answer in it; of several at once none is repaired. */
export const createOpenAiCallReader = (): CallReader => {
  // Ids are not looked at here, so nothing depends on the request's.
  const readCall = createCallReader('')
  return (json) => {
    if (errorOf(json)) return { pieces: [], ends: 'cut' }
    const [choice, ...others] = Array.isArray(json.choices) ? json.choices : []
    if (!isObject(choice)) return nothing
    if (others.length > 0 || (choice.index ?? 0) !== 0) return { pieces: [], isUnclear: true }
    const delta = isObject(choice.delta) ? choice.delta : {}
    const fragments = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
    const events = fragments.map((fragment) => readCall(fragment)[0])
    const pieces = events.map(pieceOf)

    const rewrite = (texts: readonly string[]): Json => {
      const left = [...texts]
      const calls = fragments.map((fragment, at) =>
        pieces[at] === undefined ? fragment : withArguments(fragment, left.shift() ?? ''),
      )
      return { ...json, choices: [{ ...choice, delta: { ...delta, tool_calls: calls } }] }
    }

    return {
      pieces: pieces.filter((piece) => piece !== undefined),
      rewrite,
      named: events.flatMap((event) => (event?.type === 'call' ? [[event.index, event.name] as const] : [])),
      ...endOf(choice, delta),
    }
  }
}

const repairChoice = (choice: unknown, repair: Repair): unknown => {
  if (!isObject(choice) || !isObject(choice.message) || isCut(choice.finish_reason)) return choice
  const { tool_calls: calls } = choice.message
  if (!Array.isArray(calls)) return choice
  const repaired = calls.map((call) => {
    const asked = isObject(call) && isObject(call.function) ? call.function : undefined
    if (typeof asked?.name !== 'string' || typeof asked.arguments !== 'string') return call
    return withArguments(call, repair.apply(asked.name, asked.arguments))
  })
  return { ...choice, message: { ...choice.message, tool_calls: repaired } }
}

/** An answer in one piece: the very same bytes where nothing had to be repaired. */
export const repairOpenAiAnswer = (body: Uint8Array, repair: Repair): Uint8Array => {
  const json = parseReply(decode(body))
  if (!Array.isArray(json?.choices)) return body
  const before = repair.count()
  const choices = json.choices.map((choice) => repairChoice(choice, repair))
  return repair.count() === before ? body : encode(JSON.stringify({ ...json, choices }))
}
