import type { DialectName } from '../../src/domain/job'
import type { Json } from './fakes'

/** One endpoint as its clients know it: what they send, and what is an answer to them. */
export interface Protocol {
  readonly name: string
  readonly path: string
  readonly dialect: DialectName
  /** Valid bodies that between them hold every member of note. */
  readonly bodies: readonly object[]
  /** It has the members of a whole answer, which clients read without asking. */
  isWhole(answer: Json): boolean
  /** A stream may end with this record. */
  isEnd(record: Json): boolean
  /** The router writes its answers itself; elsewhere a node that speaks the protocol is passed on as it is. */
  readonly isOurs?: true
}

const text = 'Tell me about llamas.'
const picture = 'iVBORw0KGgo='
const schema = { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] }
const fn = { name: 'now', description: 'The time', parameters: schema }
const call = { id: 'call_1', type: 'function', function: { name: 'now', arguments: '{"zone":"UTC"}' } }
const parts = [
  { type: 'text', text },
  { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } },
]

const turns = [
  { role: 'system', content: 'Be short.' },
  { role: 'user', content: parts },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'call_1', content: '12:00' },
  { role: 'user', content: text },
]

const chatMore = {
  max_tokens: 4,
  temperature: 0.5,
  top_p: 0.9,
  seed: 1,
  stop: ['###'],
  tools: [{ type: 'function', function: fn }],
  tool_choice: 'auto',
}

const ollamaTurns = [
  { role: 'system', content: 'Be short.' },
  { role: 'user', content: text, images: [picture] },
  { role: 'assistant', content: '', tool_calls: [{ function: { name: 'now', arguments: { zone: 'UTC' } } }] },
  { role: 'tool', tool_name: 'now', content: '12:00' },
  { role: 'user', content: text },
]

const options = { num_predict: 4, temperature: 0.5, top_k: 4, stop: ['###'], seed: 1 }

const anthropicTurns = [
  { role: 'user', content: [{ type: 'text', text, cache_control: { type: 'ephemeral' } }] },
  { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'now', input: { zone: 'UTC' } }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: '12' }] }] },
]

const responsesInput = [
  { role: 'user', content: [{ type: 'input_text', text }] },
  { type: 'function_call', call_id: 'call_1', name: 'now', arguments: '{}' },
  { type: 'function_call_output', call_id: 'call_1', output: '12:00' },
  { type: 'message', role: 'user', content: text },
]

const both = (body: object): object[] => [
  { model: 'm', stream: true, ...body },
  { model: 'm', stream: false, ...body },
]

const isText = (value: unknown): boolean => typeof value === 'string'
const never = (): boolean => false

export const protocols: readonly Protocol[] = [
  {
    name: 'openai chat',
    path: '/v1/chat/completions',
    dialect: 'openai',
    bodies: [
      ...both({ messages: [{ role: 'user', content: text }] }),
      ...both({ messages: turns, ...chatMore, stream_options: { include_usage: true } }),
      { model: 'm', messages: turns, response_format: { type: 'json_schema', json_schema: { name: 'z', schema } } },
    ],
    isWhole: ({ choices, object }) => Array.isArray(choices) && object === 'chat.completion',
    isEnd: (record) => record === '[DONE]',
  },
  {
    name: 'openai completions',
    path: '/v1/completions',
    dialect: 'openai',
    bodies: [
      ...both({ prompt: text }),
      ...both({ prompt: [text], max_tokens: 4, echo: true, stop: ['#'], suffix: '' }),
    ],
    isWhole: ({ choices, object }) => Array.isArray(choices) && object === 'text_completion',
    isEnd: (record) => record === '[DONE]',
  },
  {
    name: 'openai responses',
    path: '/v1/responses',
    dialect: 'openai',
    bodies: [
      ...both({ input: text, instructions: 'Be short.' }),
      ...both({ input: responsesInput, max_output_tokens: 16, tools: [{ type: 'function', ...fn }], store: false }),
    ],
    isWhole: ({ output, object }) => Array.isArray(output) && object === 'response',
    isOurs: true,
    isEnd: ({ type }) => ['response.completed', 'response.incomplete', 'response.failed'].includes(type),
  },
  {
    name: 'openai embeddings',
    path: '/v1/embeddings',
    dialect: 'openai',
    bodies: [
      { model: 'm', input: text },
      { model: 'm', input: [text, 'more'], encoding_format: 'base64', dimensions: 8 },
    ],
    isWhole: ({ data }) => Array.isArray(data) && data.every(({ embedding }: Json) => embedding?.length > 0),
    isOurs: true,
    isEnd: never,
  },
  {
    name: 'anthropic messages',
    path: '/v1/messages',
    dialect: 'anthropic',
    bodies: [
      ...both({ max_tokens: 8, messages: [{ role: 'user', content: text }] }),
      ...both({
        max_tokens: 8,
        system: [{ type: 'text', text: 'Be short.' }],
        messages: anthropicTurns,
        tools: [{ name: 'now', description: 'The time', input_schema: schema }],
        thinking: { type: 'enabled', budget_tokens: 1_024 },
        metadata: { user_id: 'me' },
      }),
    ],
    isWhole: ({ type, content }) => type === 'message' && Array.isArray(content),
    isEnd: ({ type }) => type === 'message_stop',
  },
  {
    name: 'ollama chat',
    path: '/api/chat',
    dialect: 'ollama',
    bodies: [
      ...both({ messages: [{ role: 'user', content: text }] }),
      ...both({
        messages: ollamaTurns,
        options,
        tools: [{ type: 'function', function: fn }],
        format: schema,
        think: true,
      }),
    ],
    isWhole: ({ done, message }) => done === true && isText(message?.role),
    isEnd: ({ done }) => done === true,
  },
  {
    name: 'ollama generate',
    path: '/api/generate',
    dialect: 'ollama',
    bodies: [
      ...both({ prompt: text }),
      ...both({ prompt: text, system: 'Be short.', images: [picture], options, keep_alive: '5m', raw: false }),
    ],
    isWhole: ({ done, response }) => done === true && isText(response),
    isEnd: ({ done }) => done === true,
  },
  {
    name: 'ollama embed',
    path: '/api/embed',
    dialect: 'ollama',
    bodies: [
      { model: 'm', input: text },
      { model: 'm', input: [text, 'more'], truncate: true, options: { num_batch: 8 }, dimensions: 8 },
    ],
    isWhole: ({ embeddings }) => Array.isArray(embeddings),
    isEnd: never,
  },
  {
    name: 'ollama embeddings',
    path: '/api/embeddings',
    dialect: 'ollama',
    bodies: [
      { model: 'm', prompt: text },
      { model: 'm', prompt: text, keep_alive: 60, options: {} },
    ],
    isWhole: ({ embedding }) => Array.isArray(embedding),
    isEnd: never,
  },
  {
    name: 'native jobs',
    path: '/api/v1/jobs',
    dialect: 'native',
    bodies: [
      ...both({ messages: [{ role: 'user', content: text }] }),
      ...both({
        messages: turns,
        priority: 'batch',
        policy: 'residency',
        tags: ['t'],
        needs: ['chat'],
        maxOutputTokens: 4,
        session: 's',
        clientRequestId: 'c',
      }),
      { models: ['m', 'n'], messages: [{ role: 'user', content: text }], stream: true },
    ],
    isWhole: (answer) => isText(answer.text) && isText(answer.finish) && 'record' in answer,
    isOurs: true,
    isEnd: (record) => 'record' in record,
  },
]
