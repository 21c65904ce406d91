/** OpenAI's audio endpoints: `/v1/audio/transcriptions`, `/v1/audio/translations`, `/v1/audio/speech`. */
import { splice } from './bytes'
import { relayChecked } from './checked'
import type { Arrival, InferenceRoute } from './dialect'
import type { Edit } from './bytes'
import type { Exchange, UpstreamRequest } from './exchange'
import { invalid, parseBody, stringAt } from './json/values'
import { mediaJob } from './media'
import type { Form } from './multipart'
import { fieldOf, filesOf, readForm, setField } from './multipart'
import { renamed } from './renamed'
import type { Target } from './node-side'
import { commonOf } from './openai-side'
import { upstreamRequest } from './upstream'

type Listening = 'transcriptions' | 'translations'

/** whisper.cpp has one endpoint, no models, and translates where it is told to. */
const editsFor = (form: Form, what: Listening, { model, native }: Target): readonly Edit[] => {
  if (!native.includes('whisper')) return fieldOf(form, 'model') === model ? [] : setField(form, 'model', model)
  return what === 'translations' ? setField(form, 'translate', 'true') : []
}

const listen = (what: Listening, arrival: Arrival): Exchange => {
  const contentType = arrival.headers.get('content-type')
  const form = readForm(arrival.body, contentType)
  if (filesOf(form, 'file').length === 0) throw invalid('"file" is missing.', 'file')
  const job = mediaJob(arrival, {
    operation: `openai.${what}`,
    needs: ['transcription'],
    model: fieldOf(form, 'model'),
    stream: fieldOf(form, 'stream') === 'true',
  })
  return {
    ...commonOf(job),
    request: (target): UpstreamRequest => ({
      method: 'POST',
      path: target.native.includes('whisper') ? '/inference' : `/v1/audio/${what}`,
      headers: { 'content-type': contentType ?? '', accept: '*/*' },
      body: splice(form.body, editsFor(form, what, target)),
      dialect: target.native.includes('whisper') ? 'whisper' : 'openai',
      stream: job.stream,
    }),
    reply: (_request, _model, _timing, type = 'application/json') => relayChecked(type),
  }
}

const speak = (arrival: Arrival): Exchange => {
  const body = parseBody(arrival.body)
  if (!stringAt(body, 'input')) throw invalid('"input" is missing or empty.', 'input')
  const stream = stringAt(body, 'stream_format') === 'sse'
  const job = mediaJob(arrival, {
    operation: 'openai.speech',
    needs: ['speech'],
    model: stringAt(body, 'model'),
    stream,
  })
  return {
    ...commonOf(job),
    flows: true,
    request: ({ model }) => {
      const request = upstreamRequest('openai', '/v1/audio/speech', renamed(arrival.body, body, model), stream)
      return { ...request, headers: { ...request.headers, accept: '*/*' } }
    },
    reply: (_request, _model, _timing, type = 'audio/mpeg') => relayChecked(type),
  }
}

export const audioRoutes: readonly InferenceRoute[] = [
  {
    method: 'POST',
    path: '/v1/audio/transcriptions',
    decode: (arrival) => listen('transcriptions', arrival),
  },
  { method: 'POST', path: '/v1/audio/translations', decode: (arrival) => listen('translations', arrival) },
  { method: 'POST', path: '/v1/audio/speech', decode: speak },
]
