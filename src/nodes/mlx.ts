import type { NodeAdapter } from './adapter'
import { openai } from './openai'

/**
 * `mlx_lm.server`: lists what lies in its cache and brings the named model into memory, in place of the one before. Only
 * listed models are asked for, since an unknown name would make it download.
 */
export const mlx: NodeAdapter = {
  ...openai,
  kind: 'mlx',
  // Nothing but the port and the spelling of its names would tell it from others, so it is what the configuration says.
  fingerprint: async () => undefined,

  async report(node, http, signal) {
    const report = await openai.report(node, http, signal)
    const models = report.models.map((model) => ({ ...model, capabilities: ['chat', 'completion', 'tools'] as const }))
    const isOnly = models.length === 1
    return { ...report, models, resident: isOnly ? report.resident : [], loadsOnRequest: !isOnly, maxResident: 1 }
  },
}
