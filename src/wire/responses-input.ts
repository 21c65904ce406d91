/** The `input` of a Responses request: items in any order -> the turns of a chat. */
import { RouterError } from '../domain/errors'
import type { Message, Part, ToolCall } from './canonical'
import { argumentsText } from './calls'
import { customArguments } from './custom-tools'
import type { Json } from './json/values'
import { invalid, isObject } from './json/values'
import { readContent, roles } from './openai-request'
import type { Toolbox } from './responses-tools'

type Turn = { -readonly [K in keyof Message]: Message[K] } & { parts: Part[]; calls: ToolCall[] }

/** Items with a type of their own for what a client's tool was asked to do, and where each has it. */
const ownCalls: Readonly<Record<string, string>> = {
  local_shell_call: 'action',
  shell_call: 'action',
  apply_patch_call: 'operation',
}

const outputs: ReadonlySet<unknown> = new Set([
  'function_call_output',
  'custom_tool_call_output',
  ...Object.keys(ownCalls).map((type) => `${type}_output`),
])

/** For history that a client believes to be kept here: without it an answer would be one to another conversation. */
export const nothingKept = (what: string, param: string): RouterError =>
  new RouterError('response_not_found', `${what} is not known: this router keeps no responses.`, {
    param,
    hint: 'Send the whole conversation in "input", with "store": false.',
  })

const textOf = (parts: unknown): string[] =>
  Array.isArray(parts)
    ? parts.flatMap((part) => (isObject(part) && typeof part.text === 'string' && part.text !== '' ? part.text : []))
    : []

const callIdOf = ({ call_id: callId, id }: Json): { id?: string } => {
  const known = callId ?? id
  return typeof known === 'string' ? { id: known } : {}
}

/** A call of a tool, if the item is one. */
const readCall = (item: Json, toolbox: Toolbox): ToolCall | undefined => {
  const { type, name, namespace } = item
  const id = callIdOf(item)
  const known = (): string =>
    toolbox.functionOf(String(name), typeof namespace === 'string' && namespace !== '' ? namespace : undefined)
  if (type === 'function_call') return { ...id, name: known(), arguments: argumentsText(item.arguments) }
  if (type === 'custom_tool_call') return { ...id, name: known(), arguments: customArguments(item.input) }
  const own = typeof type === 'string' && Object.hasOwn(ownCalls, type) ? ownCalls[type] : undefined
  if (own === undefined) return undefined
  return { ...id, name: String(type).replace(/_call$/, ''), arguments: argumentsText(item[own] ?? {}) }
}

const readOutput = (output: unknown, param: string): Part[] =>
  typeof output === 'string' || Array.isArray(output)
    ? readContent(output, param)
    : [{ kind: 'text', text: argumentsText(output) }]

/** Neighbouring items of one side become one turn: what the model said, thought and called belongs together. */
const createTurns = () => {
  const turns: Turn[] = []
  let thought: string[] = []
  let pictures: Part[] = []

  const begin = (turn: Omit<Turn, 'calls'>): Turn => {
    const begun = { ...turn, calls: [] }
    turns.push(begun)
    return begun
  }

  /** Results of tools hold only text, so their pictures follow as something that the user shows. */
  const showPictures = (): void => {
    if (pictures.length > 0) begin({ role: 'user', parts: pictures })
    pictures = []
  }

  const assistant = (): Turn => {
    showPictures()
    const last = turns.at(-1)
    const turn = last?.role === 'assistant' ? last : begin({ role: 'assistant', parts: [] })
    if (thought.length > 0) turn.reasoning = [...(turn.reasoning ? [turn.reasoning] : []), ...thought].join('\n')
    thought = []
    return turn
  }

  return {
    think: (texts: readonly string[]): void => void thought.push(...texts),
    call: (call: ToolCall): void => void assistant().calls.push(call),
    say(role: Message['role'], parts: readonly Part[]): void {
      if (role === 'assistant') {
        assistant().parts.push(...parts)
        return
      }
      showPictures()
      thought = []
      begin({ role, parts: [...parts] })
    },
    result(parts: readonly Part[], callId: string | undefined): void {
      thought = []
      const shown = parts.filter(({ kind }) => kind !== 'text')
      const said = parts.filter(({ kind }) => kind === 'text')
      if (shown.length > 0) pictures.push({ kind: 'text', text: `Result of the tool call ${callId ?? ''}:` }, ...shown)
      const elsewhere: Part = { kind: 'text', text: 'See the picture that follows.' }
      const held = said.length === 0 && shown.length > 0 ? [elsewhere] : said
      begin({ role: 'tool', parts: held, ...(callId !== undefined && { callId }) })
    },
    end(): readonly Message[] {
      showPictures()
      return turns
    },
  }
}

/**
 * Items of types that are not known are left out, since clients are ahead of every server. Throws `invalid_request`, and
 * `response_not_found` for an item that only a server with a memory could look up.
 */
export const readInput = (input: unknown, toolbox: Toolbox): readonly Message[] => {
  if (typeof input === 'string') return [{ role: 'user', parts: [{ kind: 'text', text: input }], calls: [] }]
  if (!Array.isArray(input)) throw invalid('"input" must be a string or a list of items.', 'input')
  const turns = createTurns()
  for (const [index, item] of input.entries()) {
    const param = `input[${index}]`
    if (!isObject(item)) throw invalid(`"${param}" must be an object.`, param)
    const { type = item.role === undefined ? undefined : 'message' } = item
    const call = readCall(item, toolbox)
    if (call) turns.call(call)
    else if (outputs.has(type)) turns.result(readOutput(item.output, `${param}.output`), callIdOf(item).id)
    else if (type === 'reasoning') turns.think([...textOf(item.summary), ...textOf(item.content)])
    else if (type === 'item_reference' && !String(item.id).startsWith('rs_'))
      throw nothingKept('The item that is referred to', param)
    else if (type === 'message') {
      const role = typeof item.role === 'string' ? roles[item.role] : undefined
      if (role === undefined || role === 'tool') throw invalid(`"${param}.role" is not a role.`, `${param}.role`)
      turns.say(role, readContent(item.content, `${param}.content`))
    }
  }
  return turns.end()
}
