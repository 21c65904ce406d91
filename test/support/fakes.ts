import type { FakeModel, FakeNode, FakeOptions } from '../../src/sim/fake/options'
import { startFake } from '../../src/sim/fake/server'

/** A model that loads in 20 ms and answers within some ms. */
export const fastModel = (name = 'm', more: Partial<FakeModel> = {}): FakeModel => ({
  name,
  sizeGb: 1,
  contextTokens: 8192,
  prefillPerSecond: 100_000,
  decodePerSecond: 4_000,
  loadMs: 20,
  ...more,
})

/** A model slow enough to be caught at work: 20 tokens/s. */
export const slowModel = (name = 'm', more: Partial<FakeModel> = {}): FakeModel =>
  fastModel(name, { decodePerSecond: 20, ...more })

/** Options of a fake; models default to one fast `m`. */
export type FakeSpec = Omit<FakeOptions, 'models'> & { readonly models?: readonly FakeModel[] }

export const startFakes = (specs: readonly FakeSpec[]): Promise<FakeNode[]> =>
  Promise.all(specs.map((spec) => startFake({ models: [fastModel()], ...spec })))

/** Runs with the fakes and stops them whatever happens. */
export const withFakes = async <T>(
  specs: readonly FakeSpec[],
  run: (...fakes: FakeNode[]) => Promise<T>,
): Promise<T> => {
  const fakes = await startFakes(specs)
  try {
    return await run(...fakes)
  } finally {
    await Promise.all(fakes.map((fake) => fake.stop()))
  }
}

/** Resolves once the condition holds; rejects after `limitMs`. */
export const until = async (condition: () => boolean, limitMs = 3_000): Promise<void> => {
  const end = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`still not so after ${limitMs} ms: ${condition}`)
    await Bun.sleep(2)
  }
}

export interface AskOptions {
  readonly model?: string
  readonly prompt?: string
  readonly stream?: boolean
  readonly signal?: AbortSignal
  readonly more?: object
}

const post = (url: string, body: object, signal?: AbortSignal): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  })

/** `/v1/chat/completions`, straight to the fake. */
export const askChat = (fake: Pick<FakeNode, 'url'>, options: AskOptions = {}): Promise<Response> => {
  const { model = 'm', prompt = 'hi', stream = true, signal, more } = options
  return post(
    `${fake.url}/v1/chat/completions`,
    { model, stream, messages: [{ role: 'user', content: prompt }], ...more },
    signal,
  )
}

/** Ollama's `/api/chat`, straight to the fake. */
export const askOllama = (fake: Pick<FakeNode, 'url'>, options: AskOptions = {}): Promise<Response> => {
  const { model = 'm', prompt = 'hi', stream = true, signal, more } = options
  return post(`${fake.url}/api/chat`, { model, stream, messages: [{ role: 'user', content: prompt }], ...more }, signal)
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers whose shape is what they check
export type Json = any

export interface JsonAnswer {
  readonly status: number
  readonly headers: Headers
  readonly json: Json
}

export const readJson = async (answer: Response | Promise<Response>): Promise<Json> => (await answer).json()

const jsonAnswer = async (answer: Response): Promise<JsonAnswer> => ({
  status: answer.status,
  headers: answer.headers,
  json: await answer.json(),
})

export const getJson = async (url: string): Promise<JsonAnswer> => jsonAnswer(await fetch(url))

export const postJson = async (url: string, body: object): Promise<JsonAnswer> => jsonAnswer(await post(url, body))

/** The text of an OpenAI stream. */
export const chatText = (body: string): string =>
  body
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)).choices?.[0]?.delta?.content ?? '')
    .join('')

/** The text of an Ollama chat stream. */
export const ollamaText = (body: string): string =>
  body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).message?.content ?? '')
    .join('')
