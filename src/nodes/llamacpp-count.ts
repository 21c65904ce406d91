import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { NodeDescription } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import type { CountablePrompt } from '../wire/token-count'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'
import { Props } from './llamacpp-wire'

const Count = Type.Object({ input_tokens: Type.Integer({ minimum: 0 }) })
const Rendered = Type.Object({ prompt: Type.String() })
const Tokens = Type.Object({ tokens: Type.Array(Type.Unknown()) })

/**
 * Tokens of the prompt by llama-server's own template and vocabulary; no slot is used. A router passes the calls on to
 * the model's child, which must not be started for them: hence `autoload=false`, which a single server does not know.
 */
export const countLlamacpp = async (
  node: NodeDescription,
  model: string,
  { anthropic, chat }: CountablePrompt,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<number | undefined> => {
  const post = <S extends TSchema>(schema: S, path: string, body: object): Promise<Static<S>> =>
    http.json(schema, endpoint(node.url, `${path}?autoload=false`), { method: 'POST', body, node, signal })

  // Counting would wake a sleeping server, which loads its weights again; this does not.
  const query = `?model=${encodeURIComponent(model)}&autoload=false`
  const props = await http.json(Props, endpoint(node.url, `/props${query}`), { node, signal })
  if (props.is_sleeping) return undefined

  const counted =
    anthropic && (await post(Count, '/v1/messages/count_tokens', anthropic(model)).catch(undefinedWithoutPath))
  if (counted) return counted.input_tokens
  const { prompt } = await post(Rendered, '/apply-template', chat(model))
  const { tokens } = await post(Tokens, '/tokenize', { model, content: prompt, add_special: true, parse_special: true })
  return tokens.length
}

/** Servers from before November 2025 have no count of their own. */
const undefinedWithoutPath = (error: unknown): undefined => {
  if (!(error instanceof NodeFault) || error.failure.status !== 404) throw error
}
