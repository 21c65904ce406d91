/** Items of a Responses answer: how each kind looks, and the events of a stream that build it. */
import { customInput } from './custom-tools'
import type { Json } from './json/values'
import { compact } from './json/values'
import type { ClientTool } from './responses-tools'

export type ItemKind = 'reasoning' | 'message' | 'function' | 'custom'

/** One item as it grows. Its id and place never change once the client has seen them. */
export interface Item {
  readonly kind: ItemKind
  readonly id: string
  readonly index: number
  /** What the node calls a call by, and what the client knows as its tool. */
  readonly call?: { readonly id: string; readonly tool: ClientTool }
  status: 'in_progress' | 'completed' | 'incomplete'
  /** What it says, or the arguments of its call, as far as they are known. */
  text: string
  readonly logprobs: unknown[]
}

/** An event without its number. */
export type ItemEvent = readonly [type: string, data: Json]

interface Form {
  readonly idPrefix: string
  /** As it stands now. */
  shape(item: Item): Json
  /** Before anything is in it. */
  begin(item: Item): readonly ItemEvent[]
  grow(item: Item, text: string, logprobs: readonly unknown[]): readonly ItemEvent[]
  finish(item: Item): readonly ItemEvent[]
}

const of = ({ id, index }: Item): Json => ({ item_id: id, output_index: index })

const added = (item: Item, shape: Json): ItemEvent => [
  'response.output_item.added',
  { output_index: item.index, item: shape },
]

const done = (item: Item, shape: Json): ItemEvent => [
  'response.output_item.done',
  { output_index: item.index, item: shape },
]

const summaryText = (text: string): Json => ({ type: 'summary_text', text })

const reasoningShape = ({ id, text, status }: Item): Json => ({
  id,
  type: 'reasoning',
  summary: [summaryText(text)],
  status,
})

const reasoning: Form = {
  idPrefix: 'rs',
  shape: reasoningShape,
  begin: (item) => [
    added(item, { ...reasoningShape(item), summary: [] }),
    ['response.reasoning_summary_part.added', { ...of(item), summary_index: 0, part: summaryText('') }],
  ],
  grow: (item, delta) => [['response.reasoning_summary_text.delta', { ...of(item), summary_index: 0, delta }]],
  finish: (item) => [
    ['response.reasoning_summary_text.done', { ...of(item), summary_index: 0, text: item.text }],
    ['response.reasoning_summary_part.done', { ...of(item), summary_index: 0, part: summaryText(item.text) }],
    done(item, reasoningShape(item)),
  ],
}

const outputText = (text: string, logprobs: readonly unknown[]): Json => ({
  type: 'output_text',
  text,
  annotations: [],
  logprobs,
})

const messageShape = ({ id, status, text, logprobs }: Item): Json => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content: [outputText(text, logprobs)],
})

const message: Form = {
  idPrefix: 'msg',
  shape: messageShape,
  begin: (item) => [
    added(item, { ...messageShape(item), content: [] }),
    ['response.content_part.added', { ...of(item), content_index: 0, part: outputText('', []) }],
  ],
  grow: (item, delta, logprobs) => [['response.output_text.delta', { ...of(item), content_index: 0, delta, logprobs }]],
  finish: (item) => {
    const { text, logprobs } = item
    return [
      ['response.output_text.done', { ...of(item), content_index: 0, text, logprobs }],
      ['response.content_part.done', { ...of(item), content_index: 0, part: outputText(text, logprobs) }],
      done(item, messageShape(item)),
    ]
  },
}

const callShape = (item: Item, type: string, given: Json): Json => {
  const { id, call, status } = item
  return compact({
    id,
    type,
    call_id: call?.id,
    name: call?.tool.name,
    namespace: call?.tool.namespace,
    ...given,
    status,
  })
}

const functionShape = (item: Item): Json => callShape(item, 'function_call', { arguments: item.text })

const functionCall: Form = {
  idPrefix: 'fc',
  shape: functionShape,
  begin: (item) => [added(item, functionShape(item))],
  grow: (item, delta) => [['response.function_call_arguments.delta', { ...of(item), delta }]],
  finish: (item) => [
    ['response.function_call_arguments.done', { ...of(item), name: item.call?.tool.name, arguments: item.text }],
    done(item, functionShape(item)),
  ],
}

/** Its text is in the arguments of a function, so it can be told only once these are whole. */
const customShape = (item: Item): Json =>
  callShape(item, 'custom_tool_call', { input: item.status === 'in_progress' ? '' : customInput(item.text) })

const customCall: Form = {
  idPrefix: 'ctc',
  shape: customShape,
  begin: (item) => [added(item, customShape(item))],
  grow: () => [],
  finish: (item) => {
    const input = customInput(item.text)
    return [
      ['response.custom_tool_call_input.delta', { ...of(item), delta: input }],
      ['response.custom_tool_call_input.done', { ...of(item), input }],
      done(item, customShape(item)),
    ]
  },
}

export const forms: Readonly<Record<ItemKind, Form>> = {
  reasoning,
  message,
  function: functionCall,
  custom: customCall,
}

/** All that was said so far, as the response object lists it. */
export const outputOf = (items: readonly Item[]): Json[] => items.map((item) => forms[item.kind].shape(item))
