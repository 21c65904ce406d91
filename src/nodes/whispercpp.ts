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
    const [root, health] = await Promise.all([peek(url, '/', http, signal), peek(url, '/health', http, signal)])
    const isIt = /whisper/i.test(root?.text ?? '') && !root?.headers.has('x-fleet-instance')
    return isIt && shaped(Health, health) ? { kind: 'whispercpp', url: rootOf(url) } : undefined
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
