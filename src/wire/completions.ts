/** OpenAI's legacy `POST /v1/completions`: a prompt as it stands, that no template touches and nothing makes a chat of. */
import type { Job } from '../domain/job'
import type { CompletionRequest } from './completions-request'
import { peekCompletion, readCompletion } from './completions-request'
import { createCompletionStreamWriter, createCompletionWholeWriter } from './completions-writer'
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import { parseBody } from './json/values'
import type { Target } from './node-side'
import { readerFor, speaksOpenAi } from './node-side'
import { answerOf, commonOf, contentTypeOf, nodeError, relayed, relayTo } from './openai-side'
import { writeOllamaGenerate } from './to-ollama'
import { translate } from './translate'
import { upstreamRequest } from './upstream'

const path = '/v1/completions'

const toOllama = (asked: CompletionRequest, job: Job, { node, model, contextTokens }: Target): UpstreamRequest => {
  const body = writeOllamaGenerate(asked, {
    model,
    stream: job.stream,
    ...(contextTokens !== undefined && { contextTokens }),
    ...(node.keepAlive !== undefined && { keepAlive: node.keepAlive }),
  })
  return upstreamRequest('ollama', '/api/generate', body, job.stream)
}

const decode = (arrival: Arrival): Exchange => {
  const facts = peekCompletion(arrival.body)
  const job = jobOf(arrival, facts, { dialect: 'openai', operation: 'openai.completions', streams: false })
  let read: CompletionRequest | undefined
  const asked = (): CompletionRequest => {
    read ??= readCompletion(parseBody(facts.body))
    return read
  }
  const translated = (request: UpstreamRequest): ReplyTransform => {
    const { echo, prompt } = asked()
    const answer = { ...answerOf(job, facts), prefix: echo ? prompt : '' }
    return translate({
      contentType: contentTypeOf(job),
      ...readerFor(request, job),
      writer: job.stream ? createCompletionStreamWriter(answer) : createCompletionWholeWriter(answer),
      errorText: nodeError(job),
      keepsTags: true,
    })
  }
  return {
    ...commonOf(job),
    request: (target) => (speaksOpenAi(target) ? relayTo(path, facts, target.model) : toOllama(asked(), job, target)),
    reply: (request, model) => (request.dialect === 'openai' ? relayed(job, facts, model) : translated(request)),
  }
}

export const completionsRoute: InferenceRoute = { method: 'POST', path, decode }
