import { NodeFault } from '../ports/node-gateway'
import type { NodeDescription } from '../domain/node'
import { boundedMap } from './bounded-map'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'
import { Show, type Tag, type Traits, traitsOfShow, traitsOfTag } from './ollama-wire'

const REMEMBERED_MODELS = 5_000
/** New models looked at in one poll; the rest stay unknown until the next one, which keeps a first poll short. */
const LOOKS_PER_POLL = 16
const LOOKS_AT_ONCE = 4

const keyOf = (node: NodeDescription, tag: Tag): string =>
  `${node.url} ${tag.digest ?? `${tag.name} ${tag.modified_at}`}`

/** Capabilities and context of models, asked for once per server and digest where the list itself does not tell. */
export const createTraits = () => {
  const seen = boundedMap<Traits>(REMEMBERED_MODELS)

  const look = async (node: NodeDescription, tag: Tag, http: NodeHttp, signal: AbortSignal): Promise<void> => {
    try {
      const show = await http.json(Show, endpoint(node.url, '/api/show'), {
        method: 'POST',
        body: { model: tag.name },
        node,
        signal,
      })
      seen.set(keyOf(node, tag), traitsOfShow(show))
    } catch (error) {
      // A model that cannot be shown stays usable with unknown traits; only an answer settles the matter.
      if (!(error instanceof NodeFault)) throw error
      if (error.failure.status !== undefined) seen.set(keyOf(node, tag), {})
    }
  }

  return {
    of: (node: NodeDescription, tag: Tag): Traits => traitsOfTag(tag) ?? seen.get(keyOf(node, tag)) ?? {},
    async learn(node: NodeDescription, tags: readonly Tag[], http: NodeHttp, signal: AbortSignal): Promise<void> {
      const unknown = tags.filter((tag) => !traitsOfTag(tag) && !seen.get(keyOf(node, tag))).slice(0, LOOKS_PER_POLL)
      for (let i = 0; i < unknown.length; i += LOOKS_AT_ONCE) {
        await Promise.all(unknown.slice(i, i + LOOKS_AT_ONCE).map((tag) => look(node, tag, http, signal)))
      }
    },
  }
}
