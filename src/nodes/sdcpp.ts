import { Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { peek, shaped } from './peek'
import { known, maybe } from './schema'
import { sendToSd } from './sdcpp-job'

const Capabilities = Type.Object({
  model: Type.Object({ name: maybe(Type.String()), stem: Type.String() }),
  supported_modes: maybe(Type.Array(Type.String())),
})

/** The id under which its OpenAI list has every model. */
const LISTED = 'sd-cpp-local'

/** `sd-server` of stable-diffusion.cpp: one model, one picture at a time, by jobs that can be cancelled. */
export const sdcpp: NodeAdapter = {
  kind: 'sdcpp',
  native: ['sdcpp'],
  // A job that is cancelled ends at its next step.
  lingersAfterCancel: true,
  send: sendToSd,

  async fingerprint(url, http, signal) {
    const found = shaped(Capabilities, await peek(url, '/sdcpp/v1/capabilities', http, signal))
    return found && { kind: 'sdcpp', url: rootOf(url) }
  },

  async report(node, http, signal) {
    const { model, supported_modes: modes } = await http.json(
      Capabilities,
      endpoint(node.url, '/sdcpp/v1/capabilities'),
      { node, signal },
    )
    const capabilities: readonly Capability[] = (modes ?? ['img_gen']).flatMap((mode) =>
      mode === 'img_gen' ? ['image' as const] : mode === 'vid_gen' ? ['video' as const] : [],
    )
    const aliases = [...new Set([model.name, LISTED])].filter((name) => name && name !== model.stem) as string[]
    return known({
      models: [{ name: model.stem, aliases, capabilities }],
      resident: [{ name: model.stem, state: 'ready' as const, slots: 1 }],
      canLoad: false,
      canUnload: false,
    })
  },
}
