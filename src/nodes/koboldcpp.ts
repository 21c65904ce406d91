import { Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { ResidentModel, StoredModel } from '../domain/node'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { peek, shaped } from './peek'
import { known, maybe } from './schema'

const flag = maybe(Type.Boolean())

const Version = Type.Object({
  result: Type.Literal('KoboldCpp'),
  version: maybe(Type.String()),
  txt2img: flag,
  vision: flag,
  transcribe: flag,
  tts: flag,
  music: flag,
  embeddings: flag,
})
const Model = Type.Object({ result: Type.String() })
const Window = Type.Object({ value: Type.Number() })
const Perf = Type.Object({ queue: maybe(Type.Number()), idle: maybe(Type.Number()) })

/** Its further models have no names: each is called by what it does. */
const SIDES = [
  ['txt2img', 'koboldcpp/image', 'image'],
  ['transcribe', 'koboldcpp/whisper', 'transcription'],
  ['tts', 'koboldcpp/tts', 'speech'],
  ['music', 'koboldcpp/music', 'music'],
  ['embeddings', 'koboldcpp/embedding', 'embedding'],
] as const

const NO_TEXT = /^(koboldcpp\/)?(inactive|read only)$/i

/** KoboldCpp: a text model, and beside it what it was started with to draw, listen, speak, make music and embed. One answer at a time. */
export const koboldcpp: NodeAdapter = {
  kind: 'koboldcpp',
  native: ['openai', 'sdapi'],
  lingersAfterCancel: true,

  async fingerprint(url, http, signal) {
    const found = shaped(Version, await peek(url, '/api/extra/version', http, signal))
    return found && known({ kind: 'koboldcpp' as const, version: found.version, url: rootOf(url) })
  },

  async report(node, http, signal) {
    const ask = { node, signal }
    const [version, { result }, window, perf] = await Promise.all([
      http.json(Version, endpoint(node.url, '/api/extra/version'), ask),
      http.json(Model, endpoint(node.url, '/api/v1/model'), ask),
      http.json(Window, endpoint(node.url, '/api/extra/true_max_context_length'), ask),
      http.json(Perf, endpoint(node.url, '/api/extra/perf'), ask),
    ])
    const running = (perf.queue ?? 0) + (perf.idle === 0 ? 1 : 0)
    const text: readonly Capability[] = [
      'chat',
      'completion',
      'tools',
      ...(version.vision ? (['vision'] as const) : []),
    ]
    const models: readonly StoredModel[] = [
      ...(NO_TEXT.test(result) ? [] : [{ name: result, capabilities: text, maxContextTokens: window.value }]),
      ...SIDES.flatMap(([told, name, capability]) => (version[told] ? [{ name, capabilities: [capability] }] : [])),
    ]
    const draws = version.txt2img === true && !(await answers(endpoint(node.url, '/sdapi/v1/options'), ask))
    return known({
      version: version.version,
      models,
      resident: models.map(
        ({ name, maxContextTokens }): ResidentModel =>
          known({ name, state: 'ready' as const, slots: 1, running, contextTokens: maxContextTokens }),
      ),
      canLoad: false,
      canUnload: false,
      lanesDown: draws ? (['image'] as const) : undefined,
    })

    async function answers(url: string, options: typeof ask): Promise<boolean> {
      const { status } = await http.raw(url, options)
      return status < 500
    }
  },
}
