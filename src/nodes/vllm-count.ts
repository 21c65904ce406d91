import { Type } from '@sinclair/typebox'
import type { NodeDescription } from '../domain/node'
import type { CountablePrompt } from '../wire/token-count'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'

const Count = Type.Object({ count: Type.Integer({ minimum: 0 }) })

/** What of a chat decides how the template writes its prompt. */
const RENDERED = ['messages', 'tools', 'chat_template_kwargs'] as const

/** Tokens of the prompt by vLLM's own template and vocabulary; it is not queued. */
export const countVllm = async (
  node: NodeDescription,
  model: string,
  { chat }: CountablePrompt,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<number> => {
  const whole = chat(model)
  const rendered = Object.fromEntries(RENDERED.filter((key) => key in whole).map((key) => [key, whole[key]]))
  const body = { model, ...rendered, add_generation_prompt: true }
  return (await http.json(Count, endpoint(node.url, '/tokenize'), { method: 'POST', body, node, signal })).count
}
