import type { ServerDeps } from '../deps'
import type { Route } from '../route'
import { anthropicRoutes } from './anthropic'
import { healthRoutes } from './health'
import { inferenceRoutes } from './inference'
import { nativeRoutes } from './native'
import { ollamaRoutes } from './ollama'
import { openaiRoutes } from './openai'

/** Every route of the router. */
export const createRoutes = (deps: ServerDeps): Route[] => [
  ...inferenceRoutes(deps),
  ...openaiRoutes(deps),
  ...anthropicRoutes(deps),
  ...ollamaRoutes(deps),
  ...nativeRoutes(deps),
  ...healthRoutes(deps),
]
