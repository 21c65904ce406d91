import { Type } from '@sinclair/typebox'
import type { NodeAdapter } from './adapter'
import { rootOf } from './endpoint'
import { openai } from './openai'
import { peek, shaped } from './peek'

/** Its list says so much of a model and no more; whatever is like it says at least whose the model is. */
const Entry = Type.Object(
  { id: Type.String(), object: Type.Literal('model'), created: Type.Number() },
  { additionalProperties: false },
)
const List = Type.Object(
  { object: Type.Literal('list'), data: Type.Array(Entry, { minItems: 1 }) },
  { additionalProperties: false },
)
const Health = Type.Object({ status: Type.Literal('ok') }, { additionalProperties: false })

/** It is made with the HTTP server that comes with Python, which hardly any other engine is. */
const PYTHON_SERVER = /^BaseHTTP\/\S+ Python\//

/**
 * `mlx_lm.server`: lists what lies in its cache and brings the named model into memory, in place of the one before. Only
 * listed models are asked for, since an unknown name would make it download.
 */
export const mlx: NodeAdapter = {
  ...openai,
  kind: 'mlx',

  /** It never names itself, so all three of its signs have to be there. */
  async fingerprint(url, http, signal) {
    const [list, health] = await Promise.all([
      peek(url, '/v1/models', http, signal),
      peek(url, '/health', http, signal),
    ])
    const isIt = shaped(List, list) && shaped(Health, health) && PYTHON_SERVER.test(list?.headers.get('server') ?? '')
    return isIt && !list?.headers.has('x-fleet-instance') ? { kind: 'mlx', url: rootOf(url) } : undefined
  },

  async report(node, http, signal) {
    const report = await openai.report(node, http, signal)
    const models = report.models.map((model) => ({ ...model, capabilities: ['chat', 'completion', 'tools'] as const }))
    const isOnly = models.length === 1
    return { ...report, models, resident: isOnly ? report.resident : [], loadsOnRequest: !isOnly, maxResident: 1 }
  },
}
