import type { Dialect } from './dialect'
import { ollama } from './ollama'
import { openai } from './openai'

/** Every protocol that clients may speak. */
export const dialects: readonly Dialect[] = [openai, ollama]

/** Whose shape an error takes on a path, known or not: `/` and `/api/…` are Ollama's, the rest is OpenAI's. */
export const dialectFor = (path: string): Dialect =>
  path === '' || path === '/' || path === '/api' || path.startsWith('/api/') ? ollama : openai
