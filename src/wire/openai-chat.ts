/** OpenAI `POST /v1/chat/completions`. */
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import { invalid, parseBody } from './json/values'
import type { Target } from './node-side'
import { askChat, readerFor, speaksOpenAi } from './node-side'
import { customNames, readOpenAiChat, readOpenAiTools } from './openai-request'
import { answerOf, commonOf, contentTypeOf, nodeError, relayed, relayTo } from './openai-side'
import { createOpenAiStreamWriter, createOpenAiWholeWriter } from './openai-writer'
import { peek } from './peek'
import { repairFor, toolsIn } from './repair/repair'
import { translate } from './translate'

const path = '/v1/chat/completions'

/** llama-server, also where llama-swap stands in front of it. */
const omitsRole = ({ node: { kind } }: Target): boolean => kind === 'llamacpp' || kind === 'llamaswap'

const decode = (arrival: Arrival): Exchange => {
  const facts = peek(arrival.body)
  if (facts.messages === undefined) throw invalid('"messages" is missing.', 'messages')
  if (facts.messages === 0) throw invalid('"messages" is empty.', 'messages')
  const job = jobOf(arrival, facts, { dialect: 'openai', operation: 'openai.chat', streams: false })
  const repair = () => repairFor(arrival, facts, readOpenAiTools)
  const translated = (request: UpstreamRequest): ReplyTransform => {
    const answer = { ...answerOf(job, facts), customTools: customNames(toolsIn(facts, '"custom"')) }
    return translate({
      contentType: contentTypeOf(job),
      ...readerFor(request, job),
      writer: job.stream ? createOpenAiStreamWriter(answer) : createOpenAiWholeWriter(answer),
      errorText: nodeError(job),
      repair: repair(),
    })
  }
  return {
    ...commonOf(job),
    request: (target) =>
      speaksOpenAi(target)
        ? relayTo(path, facts, target.model, omitsRole(target))
        : askChat(readOpenAiChat(parseBody(facts.body)), job, target),
    reply: (request, model) =>
      request.dialect === 'openai'
        ? relayed(job, facts, model, { repair: repair(), omitsRole: request.omitsRole === true })
        : translated(request),
  }
}

export const chatRoute: InferenceRoute = { method: 'POST', path, decode }
