/** The one small exchange that all servers carry: about 1 KB each way, as an OpenAI client and server write it. */
export const MODEL = 'bench-model'
export const CHAT_PATH = '/v1/chat/completions'

const filler = (bytes: number): string =>
  'all work and no play makes jack a dull boy '.repeat(bytes / 43 + 1).slice(0, bytes)

const system = 'You are a helpful assistant.'

export const requestBody = (stream: boolean): string =>
  JSON.stringify({
    model: MODEL,
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: filler(900) },
    ],
    stream,
  })

/** How a client asks for a stream. */
export interface Asking {
  readonly path: string
  readonly body: string
}

export const asOpenAi: Asking = { path: CHAT_PATH, body: requestBody(true) }

const messages = [{ role: 'user', content: filler(900) }]

/** The same question by clients whose protocol the node does not speak, so that every chunk is translated. */
export const translated = {
  anthropic: {
    path: '/v1/messages',
    body: JSON.stringify({ model: MODEL, max_tokens: 100_000, system, messages, stream: true }),
  },
  responses: {
    path: '/v1/responses',
    body: JSON.stringify({ model: MODEL, instructions: system, input: messages, stream: true }),
  },
  ollama: {
    path: '/api/chat',
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'system', content: system }, ...messages], stream: true }),
  },
} satisfies Record<string, Asking>

export type Translated = keyof typeof translated

export const answerBody = JSON.stringify({
  id: 'chatcmpl-0',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: filler(760) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 240, completion_tokens: 190, total_tokens: 430 },
})

/** The list of models of a node that holds one. */
export const modelsBody = (model: string): string =>
  JSON.stringify({ object: 'list', data: [{ id: model, object: 'model', created: 1_700_000_000, owned_by: 'bench' }] })
