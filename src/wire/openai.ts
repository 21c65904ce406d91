/** The OpenAI dialect and its endpoints. */
import { completionsRoute } from './completions'
import type { Dialect } from './dialect'
import { errorResponse } from './errors'
import { chatRoute } from './openai-chat'
import { embeddingsRoute } from './openai-embeddings'
import { responsesRoute } from './responses'

export const openai: Dialect = {
  name: 'openai',
  inference: [chatRoute, responsesRoute, completionsRoute, embeddingsRoute],
  refuse: (error) => errorResponse('openai', error),
}
