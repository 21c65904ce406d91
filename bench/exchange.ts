/** The one small exchange that all servers carry: about 1 KB each way, as an OpenAI client and server write it. */
export const MODEL = 'bench-model'
export const CHAT_PATH = '/v1/chat/completions'

const filler = (bytes: number): string =>
  'all work and no play makes jack a dull boy '.repeat(bytes / 43 + 1).slice(0, bytes)

export const requestBody = (stream: boolean): string =>
  JSON.stringify({
    model: MODEL,
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: filler(900) },
    ],
    stream,
  })

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
