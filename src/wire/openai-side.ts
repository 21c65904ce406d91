/** What OpenAI's chat and completions endpoints share: bytes that pass as they are, and the form of errors and answers. */
import { RouterError } from '../domain/errors'
import type { Job } from '../domain/job'
import type { Writable } from '../domain/writable'
import { encode, splice } from './bytes'
import { askForUsage, lacksUsage, renameModel } from './edits'
import { errorBody } from './errors'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import type { OpenAiAnswer } from './openai-writer'
import type { BodyFacts } from './body-facts'
import { rejectionOf } from './rejection'
import type { Repair } from './repair/repair'
import { relayOpenAiStream } from './relay/stream'
import { relayWhole } from './relay/whole'
import { upstreamRequest } from './upstream'

export const contentTypeOf = (job: Job): string => (job.stream ? 'text/event-stream' : 'application/json')

/** For a node that has the same endpoint: the client's own bytes. */
export const relayTo = (path: string, facts: BodyFacts, model: string, omitsRole = false): UpstreamRequest => {
  const body = splice(facts.body, [...renameModel(facts, model), ...askForUsage(facts)])
  const request: Writable<UpstreamRequest> = upstreamRequest('openai', path, body, facts.stream === true)
  if (omitsRole) request.omitsRole = true
  return request
}

export const relayed = (
  job: Job,
  facts: BodyFacts,
  model: string,
  { repair, omitsRole = false }: { readonly repair?: Repair | undefined; readonly omitsRole?: boolean } = {},
): ReplyTransform => {
  const options = { asked: job.asked, model, repair, omitsRole }
  return job.stream
    ? relayOpenAiStream({ ...options, dropUsage: lacksUsage(facts) })
    : relayWhole({ ...options, contentType: contentTypeOf(job) })
}

export const answerOf = (job: Job, facts: BodyFacts): OpenAiAnswer => ({
  request: job.id,
  created: Math.floor(job.arrivedAt / 1_000),
  model: job.asked,
  includeUsage: !lacksUsage(facts),
})

/** The blank line first ends whatever half event stands before it. */
const inBand = (job: Job, error: RouterError): string =>
  `\n\ndata: ${JSON.stringify(errorBody('openai', error.with({ requestId: job.id })))}\n\n`

/** An error that the node put into its answer. */
export const nodeError =
  (job: Job) =>
  (message: string): string =>
    inBand(job, new RouterError('upstream_failed', message))

/** Clients pass over comments. */
const comment = (note = 'waiting'): Uint8Array => encode(`: fleet ${note}\n\n`)

/** The members of an exchange that are the same for both endpoints. */
export const commonOf = (job: Job): Pick<Exchange, 'job' | 'rejection' | 'inBandError' | 'keepAlive'> => ({
  job,
  rejection: (request, status, body) => rejectionOf('openai', job.id, request.dialect === 'openai', status, body),
  inBandError: (error) => encode(inBand(job, error)),
  ...(job.stream && { keepAlive: comment }),
})
