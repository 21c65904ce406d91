/** KoboldCpp's `POST /api/extra/music/prepare` (a plan for a song) and `/generate` (its sound), on the nodes that have them. */
import { relayChecked } from './checked'
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange } from './exchange'
import { parseBody, stringAt } from './json/values'
import { mediaJob } from './media'
import { commonOf } from './openai-side'
import { upstreamRequest } from './upstream'

type What = 'prepare' | 'generate'

const compose = (what: What, arrival: Arrival): Exchange => {
  const body = parseBody(arrival.body)
  const job = mediaJob(arrival, {
    operation: `koboldcpp.music_${what}`,
    needs: ['music'],
    model: stringAt(body, 'model'),
    stream: false,
  })
  return {
    ...commonOf(job),
    ...(what === 'generate' && { flows: true }),
    // The engine has one model for it and reads no name, so the client's bytes go as they are.
    request: () => {
      const request = upstreamRequest('openai', `/api/extra/music/${what}`, arrival.body, false)
      return { ...request, headers: { ...request.headers, accept: '*/*' } }
    },
    reply: (_request, _model, _timing, type = what === 'generate' ? 'audio/wav' : 'application/json') =>
      relayChecked(type),
  }
}

export const musicRoutes: readonly InferenceRoute[] = (['prepare', 'generate'] as const).map((what) => ({
  method: 'POST',
  path: `/api/extra/music/${what}`,
  decode: (arrival) => compose(what, arrival),
}))
