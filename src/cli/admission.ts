import type { Args } from './args'
import { withClient } from './client'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'

export type AdmissionVerb = 'pause' | 'resume' | 'drain'

const done: Readonly<Record<AdmissionVerb, (node: string) => string>> = {
  pause: (node) => `${node} is paused: it gets no new requests. Undo with: fleet resume ${node}`,
  drain: (node) => `${node} is draining: it finishes what it has. Undo with: fleet resume ${node}`,
  resume: (node) => `${node} takes requests again. Undo with: fleet pause ${node}`,
}

/** `fleet pause|resume|drain NODE`: says what changed and how to undo it. */
export const setAdmission = (verb: AdmissionVerb, args: Args, io: Io): Promise<ExitCode> =>
  withClient(args, io, async (client) => {
    const node = args.positionals[0] ?? ''
    const changed = await client.post(`/api/v1/nodes/${encodeURIComponent(node)}/${verb}`)
    io.out(args.options.json ? `${JSON.stringify(changed, null, 2)}\n` : `${done[verb](node)}\n`)
    return exitCode.done
  })
