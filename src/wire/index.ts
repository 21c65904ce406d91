import { anthropic } from './anthropic'
import type { Dialect } from './dialect'
import { ollama } from './ollama'
import { openai } from './openai'

/** Every protocol that clients may speak. */
export const dialects: readonly Dialect[] = [openai, ollama, anthropic]

const ollamaPaths = /^\/?$|^\/api(\/|$)/
const anthropicPaths = /^(\/v1)?\/v1\/messages(\/|$)/

/** Whose shape an error takes on a path, known or not: `/` and `/api/…` are Ollama's; OpenAI's where nobody else's is. */
export const dialectFor = (path: string): Dialect => {
  if (anthropicPaths.test(path)) return anthropic
  return ollamaPaths.test(path) ? ollama : openai
}
