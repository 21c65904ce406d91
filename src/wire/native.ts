/** Our own protocol: `POST /api/v1/jobs` takes the fields of a job and messages in OpenAI's form. */
import { RouterError } from '../domain/errors'
import type { Capability, Job, Priority } from '../domain/job'
import { POLICY_NAMES } from '../domain/policies'
import { encode } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import { errorBody } from './errors'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import type { Json } from './json/values'
import { arrayAt, invalid, numberAt, parseBody, stringAt } from './json/values'
import { checkModelName } from './model-name'
import { createNativeStreamWriter, createNativeWholeWriter, event } from './native-writer'
import { askChat, readerFor } from './node-side'
import { readOpenAiChat } from './openai-request'
import { peek } from './peek'
import { rejectionOf } from './rejection'
import { createRepair } from './repair/repair'
import { translate } from './translate'

const path = '/api/v1/jobs'

const PRIORITIES: readonly Priority[] = ['critical', 'normal', 'batch']
const CAPABILITIES: readonly Capability[] = [
  'chat',
  'completion',
  'embedding',
  'vision',
  'tools',
  'thinking',
  'insert',
  'audio',
]
const maxNames = 16
const maxNameLength = 256

/** A member that may be one of some words. */
const wordAt = <W extends string>(body: Json, key: string, words: readonly W[]): W | undefined => {
  const text = stringAt(body, key)
  const word = words.find((known) => known === text)
  if (text !== undefined && word === undefined) throw invalid(`"${key}" must be one of ${words.join(', ')}.`, key)
  return word
}

const namesAt = (body: Json, key: string): readonly string[] =>
  arrayAt(body, key)
    .map((name) => {
      if (typeof name === 'string' && name.trim() !== '') return name.slice(0, maxNameLength)
      throw invalid(`"${key}" must be a list of names.`, key)
    })
    .slice(0, maxNames)

/** Tokens or a time: whole, above 0. */
const wholeAt = (body: Json, key: string): number | undefined => {
  const number = numberAt(body, key)
  if (number === undefined || (Number.isSafeInteger(number) && number > 0)) return number
  throw invalid(`"${key}" must be a whole number above 0.`, key)
}

const needsAt = (body: Json): readonly Capability[] =>
  namesAt(body, 'needs').map((need) => {
    const known = CAPABILITIES.find((capability) => capability === need)
    if (known) return known
    throw invalid(`"needs" may hold ${CAPABILITIES.join(', ')}.`, 'needs')
  })

const textAt = (body: Json, key: string): string | undefined => stringAt(body, key)?.trim().slice(0, maxNameLength)

/** The members of a job that a body may say; what the headers said stays where it is silent. */
const saidIn = (body: Json, { cap }: Arrival): Partial<Job> => {
  const priority = wordAt(body, 'priority', PRIORITIES)
  const policy = wordAt(body, 'policy', POLICY_NAMES)
  const [, ...fallback] = namesAt(body, 'models').map(checkModelName)
  const tags = namesAt(body, 'tags')
  const pin = textAt(body, 'pin')
  const session = textAt(body, 'session')
  const clientRequestId = textAt(body, 'clientRequestId')
  const maxOutputTokens = wholeAt(body, 'maxOutputTokens')
  const contextTokens = wholeAt(body, 'contextTokens')
  const deadlineAt = wholeAt(body, 'deadlineAt')
  return {
    ...(priority && { priority: cap ? cap(priority) : priority }),
    ...(policy && { policy }),
    ...(fallback.length > 0 && { fallback }),
    ...(tags.length > 0 && { tags }),
    ...(pin && { pin }),
    ...(session && { session }),
    ...(clientRequestId && { clientRequestId }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(contextTokens !== undefined && { contextTokens }),
    ...(deadlineAt !== undefined && { deadlineAt }),
  }
}

/** A list of models stands for the first of them, and the rest for the case that it cannot be had. */
const withModel = (body: Json): Json => {
  const [first] = namesAt(body, 'models')
  return body.model === undefined && first !== undefined ? { ...body, model: first } : body
}

const inBand = (job: Job, error: RouterError): string =>
  `\n\n${event('error', errorBody('native', error.with({ requestId: job.id })))}`

/** Clients pass over comments. */
const comment = (note = 'waiting'): Uint8Array => encode(`: fleet ${note}\n\n`)

const decode = (arrival: Arrival): Exchange => {
  const body = withModel(parseBody(arrival.body))
  const facts = peek(encode(JSON.stringify(body)))
  if (!facts.messages) throw invalid('"messages" is missing.', 'messages')
  const described = jobOf(arrival, facts, { dialect: 'native', operation: 'native.job', streams: false })
  const needs = [...new Set([...described.needs, ...needsAt(body)])]
  const job: Job = { ...described, ...saidIn(body, arrival), needs }
  const { maxOutputTokens } = job
  const chat = readOpenAiChat(maxOutputTokens === undefined ? body : { ...body, max_tokens: maxOutputTokens })

  const reply = (request: UpstreamRequest): ReplyTransform =>
    translate({
      contentType: job.stream ? 'text/event-stream' : 'application/json',
      ...readerFor(request, job),
      writer: job.stream ? createNativeStreamWriter(job) : createNativeWholeWriter(job),
      errorText: (message) => inBand(job, new RouterError('upstream_failed', message)),
      ...(arrival.repairToolCalls && { repair: createRepair(chat.tools) }),
    })

  return {
    job,
    request: (target) => askChat(chat, job, target),
    reply,
    rejection: (_, status, bytes) => rejectionOf('native', job.id, false, status, bytes),
    inBandError: (error) => encode(inBand(job, error)),
    ...(job.stream && { keepAlive: comment }),
  }
}

/** The one endpoint that runs a model; what its answer ends with, the record, is added where it is known. */
export const nativeJobs: InferenceRoute = { method: 'POST', path, decode }
