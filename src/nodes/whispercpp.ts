import { Type } from '@sinclair/typebox'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { peek, shaped } from './peek'

const Health = Type.Object({ status: Type.String() })

/** What clients of OpenAI call the model, and what it is called where the configuration gives it no name. */
const ALIAS = 'whisper-1'
const NAME = 'whisper'

/**
 * The server of whisper.cpp: one model without a name, one request at a time. `POST /load` would switch the model, but a
 * load that fails ends the process, so it is not used.
 */
export const whispercpp: NodeAdapter = {
  kind: 'whispercpp',
  native: ['whisper'],
  lingersAfterCancel: true,

  async fingerprint(url, http, signal) {
    const health = await peek(url, '/health', http, signal)
    // It names itself in every answer; relatives of it that speak do so too, but have no health.
    const isIt = health?.headers.get('server') === 'whisper.cpp' && shaped(Health, health)
    return isIt ? { kind: 'whispercpp', url: rootOf(url) } : undefined
  },

  async report(node, http, signal) {
    await http.json(Health, endpoint(node.url, '/health'), { node, signal })
    const [name = NAME, ...aliases] = node.models ?? [NAME, ALIAS]
    return {
      models: [{ name, ...(aliases.length > 0 && { aliases }), capabilities: ['transcription'] }],
      resident: [{ name, state: 'ready', slots: 1 }],
      canLoad: false,
      canUnload: false,
    }
  },
}
