import type { ServerDeps } from '../deps'
import type { Route } from '../route'
import { anthropicRoutes } from './anthropic'
import { healthRoutes } from './health'
import { createServe, inferenceRoutes } from './inference'
import { jobRoutes } from './jobs'
import { keyRoutes } from './keys'
import { nativeRoutes } from './native'
import { ollamaRoutes } from './ollama'
import { managementRoutes } from './ollama-management'
import { openaiRoutes } from './openai'
import { responsesRoutes } from './responses'
import { videoRoutes } from './videos'

/** Every route of the router. */
export const createRoutes = (deps: ServerDeps): Route[] => {
  const serve = createServe(deps)
  return [
    ...inferenceRoutes(deps, serve),
    ...jobRoutes(deps, serve),
    ...videoRoutes(deps, serve),
    ...keyRoutes(deps),
    ...openaiRoutes(deps),
    ...responsesRoutes(),
    ...anthropicRoutes(deps),
    ...ollamaRoutes(deps),
    ...managementRoutes(deps),
    ...nativeRoutes(deps),
    ...healthRoutes(deps),
  ]
}
