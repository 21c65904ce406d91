/** The OpenAI dialect and its endpoints. */
import { completionsRoute } from './completions'
import { audioRoutes } from './audio'
import type { Dialect } from './dialect'
import { errorResponse } from './errors'
import { imageRoutes } from './images'
import { musicRoutes } from './music'
import { chatRoute } from './openai-chat'
import { embeddingsRoute } from './openai-embeddings'
import { rerankRoutes } from './rerank'
import { responsesRoute } from './responses'
import { sdapiRoutes } from './sdapi'

export const openai: Dialect = {
  name: 'openai',
  inference: [
    chatRoute,
    responsesRoute,
    completionsRoute,
    embeddingsRoute,
    ...rerankRoutes,
    ...audioRoutes,
    ...imageRoutes,
    ...musicRoutes,
    ...sdapiRoutes,
  ],
  refuse: (error) => errorResponse('openai', error),
}
