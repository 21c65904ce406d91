import { type Static, Type } from '@sinclair/typebox'
import { sameModel } from '../domain/job'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { peek, shaped } from './peek'
import { known, maybe } from './schema'

const Checkpoint = Type.Object({ title: Type.String(), model_name: Type.String(), sha256: maybe(Type.String()) })
type Checkpoint = Static<typeof Checkpoint>
const Checkpoints = Type.Array(Checkpoint)
const Options = Type.Object({ sd_model_checkpoint: maybe(Type.String()) })
const Progress = Type.Object({ state: maybe(Type.Object({ job_count: maybe(Type.Number()) })) })

/** An A1111 says what it has in memory by the title, or by the file, of the checkpoint. */
const isNamed = ({ title, model_name: name }: Checkpoint, said: string): boolean =>
  title === said || sameModel(name, said) || title.split(' ')[0] === said

/** AUTOMATIC1111, Forge, SD.Next: one checkpoint in memory, one picture at a time. */
export const a1111: NodeAdapter = {
  kind: 'a1111',
  native: ['sdapi'],
  lingersAfterCancel: true,

  async fingerprint(url, http, signal) {
    const [options, capabilities] = await Promise.all([
      peek(url, '/sdapi/v1/options', http, signal),
      peek(url, '/sdcpp/v1/capabilities', http, signal),
    ])
    const isIt = shaped(Options, options) && capabilities?.status !== 200
    return isIt && !options?.headers.has('x-fleet-instance') ? { kind: 'a1111', url: rootOf(url) } : undefined
  },

  async report(node, http, signal) {
    const ask = { node, signal }
    const [checkpoints, options, progress] = await Promise.all([
      http.json(Checkpoints, endpoint(node.url, '/sdapi/v1/sd-models'), ask),
      http.json(Options, endpoint(node.url, '/sdapi/v1/options'), ask),
      http.json(Progress, endpoint(node.url, '/sdapi/v1/progress?skip_current_image=true'), ask),
    ])
    const current = checkpoints.find((one) => isNamed(one, options.sd_model_checkpoint ?? ''))
    const running = (progress.state?.job_count ?? 0) > 0 ? 1 : 0
    return {
      models: checkpoints.map(({ title, model_name: name, sha256 }) =>
        known({
          name,
          ...(title === name ? {} : { aliases: [title] }),
          digest: sha256,
          capabilities: ['image' as const],
        }),
      ),
      resident: current ? [{ name: current.model_name, state: 'ready', slots: 1, running }] : [],
      canLoad: true,
      canUnload: true,
      maxResident: 1,
    }
  },

  async load(node, model, _options, http, signal) {
    await change(endpoint(node.url, '/sdapi/v1/options'), { sd_model_checkpoint: model }, { node, http, signal })
  },

  async unload(node, _model, http, signal) {
    await change(endpoint(node.url, '/sdapi/v1/unload-checkpoint'), {}, { node, http, signal })
  },
}

interface Asking {
  readonly node: Parameters<NodeAdapter['report']>[0]
  readonly http: Parameters<NodeAdapter['report']>[1]
  readonly signal: AbortSignal
}

/** Answers `null` when it is done, which may take minutes. */
const change = async (url: string, body: object, { node, http, signal }: Asking): Promise<void> => {
  await http.json(Type.Unknown(), url, { method: 'POST', node, signal, body, timeoutMs: Number.POSITIVE_INFINITY })
}
