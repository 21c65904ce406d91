import { connect, type Socket } from 'node:net'
import type { DecisionRecord } from '../../src/domain/record'
import type { FakeKind, LoggedRequest } from '../../src/sim/fake/options'
import { chatText, type FakeSpec, ollamaText, until } from '../support/fakes'
import { type Bench, type Setup, withRouter } from '../support/router'

/** `withRouter` without its log: these tests make things fail. */
export const quietly = <T>(specs: readonly FakeSpec[], setup: Setup, run: (bench: Bench) => Promise<T>): Promise<T> =>
  withRouter(specs, { ...setup, log: { level: 'silent' } }, run)

export interface AskShape {
  readonly model?: string
  readonly prompt?: string
  readonly stream?: boolean
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  readonly more?: object
}

/** One way in which a client may ask for text. */
export interface Shape {
  readonly name: string
  readonly path: string
  body(options: AskShape): object
  /** The text of a streamed answer, whatever else is in it. */
  text(body: string): string
  /** Every record of a streamed answer as JSON; a broken one throws. */
  records(body: string): Json[]
  /** The protocol's own end stands in it. */
  isWhole(body: string): boolean
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers whose shape is what they check
export type Json = any

const sseRecords = (body: string): Json[] =>
  body
    .split('\n\n')
    .flatMap((event) => event.split('\n').filter((line) => line.startsWith('data: {')))
    .map((line) => JSON.parse(line.slice('data: '.length)))

const ndjsonRecords = (body: string): Json[] =>
  body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const messages = ({ prompt = 'hi' }: AskShape) => [{ role: 'user', content: prompt }]

export const openAiChat: Shape = {
  name: 'OpenAI chat',
  path: '/v1/chat/completions',
  body: ({ model = 'm', stream = true, more, ...rest }) => ({ model, stream, messages: messages(rest), ...more }),
  text: chatText,
  records: sseRecords,
  isWhole: (body) =>
    body.includes('data: [DONE]') && sseRecords(body).some((each) => each.choices?.[0]?.finish_reason === 'stop'),
}

const ollamaEnds = (body: string): boolean => ndjsonRecords(body).some(({ done }) => done === true)

export const ollamaChat: Shape = {
  name: 'Ollama chat',
  path: '/api/chat',
  body: ({ model = 'm', stream = true, more, ...rest }) => ({ model, stream, messages: messages(rest), ...more }),
  text: ollamaText,
  records: ndjsonRecords,
  isWhole: ollamaEnds,
}

export const ollamaGenerate: Shape = {
  name: 'Ollama generate',
  path: '/api/generate',
  body: ({ model = 'm', stream = true, prompt = 'hi', more }) => ({ model, stream, prompt, ...more }),
  text: (body) =>
    ndjsonRecords(body)
      .map(({ response = '' }) => response)
      .join(''),
  records: ndjsonRecords,
  isWhole: ollamaEnds,
}

export const anthropicMessages: Shape = {
  name: 'Anthropic messages',
  path: '/v1/messages',
  body: ({ model = 'm', stream = true, more, ...rest }) => ({
    model,
    stream,
    max_tokens: 64,
    messages: messages(rest),
    ...more,
  }),
  text: (body) =>
    sseRecords(body)
      .map(({ delta }) => delta?.text ?? '')
      .join(''),
  records: sseRecords,
  isWhole: (body) => sseRecords(body).at(-1)?.type === 'message_stop',
}

/** An error is inside the response object there; beside it as well, it is found where the others have it. */
const responseRecords = (body: string): Json[] =>
  sseRecords(body).map((event) =>
    event.type === 'response.failed' ? { ...event, error: event.response.error } : event,
  )

export const openAiResponses: Shape = {
  name: 'OpenAI responses',
  path: '/v1/responses',
  body: ({ model = 'm', stream = true, prompt = 'hi', more }) => ({ model, stream, input: prompt, ...more }),
  text: (body) =>
    sseRecords(body)
      .filter(({ type }) => type === 'response.output_text.delta')
      .map(({ delta }) => delta)
      .join(''),
  records: responseRecords,
  isWhole: (body) => sseRecords(body).at(-1)?.type === 'response.completed',
}

export const shapes = [openAiChat, ollamaChat, ollamaGenerate, anthropicMessages, openAiResponses] as const
export const kinds = ['llamacpp', 'ollama', 'openai'] as const satisfies readonly FakeKind[]

/** Every client shape on every kind of node: pass-through and translation both ways. */
export const pairs: readonly (readonly [string, string, Shape, (typeof kinds)[number]])[] = shapes.flatMap((shape) =>
  kinds.map((kind) => [shape.name, kind, shape, kind] as const),
)

export const ask = (url: string, shape: Shape, options: AskShape = {}): Promise<Response> =>
  fetch(`${url}${shape.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify(shape.body(options)),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    // The default gives up after five silent minutes.
    ...({ timeout: false } as object),
  })

/** Reads until so much text has come; the rest stays unread. */
export const readSome = async (reply: Response, isEnough: (text: string) => boolean): Promise<string> => {
  const reader = (reply.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!isEnough(text)) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  reader.releaseLock()
  return text
}

/** Waits for the record of the newest request, settled. */
export const settledRecord = async ({ json, of }: Bench, count = 1): Promise<DecisionRecord> => {
  await until(() => of('request.settled').length >= count, 5_000)
  const { request } = of('request.settled')[count - 1] as { request: string }
  return (await json(`/api/v1/requests/${request}`)) as DecisionRecord
}

/** The inference requests that an engine saw. */
export const asked = ({ log }: { readonly log: readonly LoggedRequest[] }): readonly LoggedRequest[] =>
  log.filter(({ method, path, body }) => {
    const prompt = body as { messages?: unknown[]; prompt?: string } | undefined
    const empty = path === '/api/generate' && !prompt?.prompt
    return method === 'POST' && /chat|generate|completions|messages/.test(path) && !empty
  })

/** A client without a library: what it sends and when it reads is in the hands of the test. */
export interface RawClient {
  readonly socket: Socket
  text(): string
  readonly closed: boolean
  pause(): void
  /** FIN, and goes on reading. */
  halfClose(): void
  /** RST. */
  reset(): void
  post(path: string, body: object): void
}

export const rawClient = (port: number): Promise<RawClient> =>
  new Promise((resolve, reject) => {
    let text = ''
    let closed = false
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    socket.setNoDelay(true)
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      closed = true
    })
    socket.on('error', reject)
    socket.on('connect', () =>
      resolve({
        socket,
        text: () => text,
        get closed() {
          return closed
        },
        pause: () => void socket.pause(),
        halfClose: () => void socket.end(),
        reset: () => void socket.resetAndDestroy(),
        post(path, body) {
          const bytes = Buffer.from(JSON.stringify(body))
          const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`
          socket.write(Buffer.concat([Buffer.from(head), bytes]))
        },
      }),
    )
  })
