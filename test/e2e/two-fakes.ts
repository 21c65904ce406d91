/** Two scripted engines of unlike protocols behind one executable, for what the small real model cannot do: tools. */
import type { FakeNode } from '../../src/sim/fake/options'
import { type Running, serve, until } from '../support/binary'
import { fastModel, startFakes } from '../support/fakes'

/** One model on each engine, so that asking for it chooses the protocol that the answer comes in. */
export const modelsWithTools = ['at-ollama', 'at-vllm'] as const

/** Makes the scripted engines call the tool of that name. */
export const callFor = (tool: string): string => `Please call ${tool} for Oslo.`

export interface FakeRig {
  readonly fleet: Running
  readonly fakes: readonly FakeNode[]
  stop(): Promise<void>
}

export const startFakeRig = async (): Promise<FakeRig> => {
  const fakes = await startFakes([
    { kind: 'ollama', models: [fastModel(modelsWithTools[0])] },
    { kind: 'vllm', models: [fastModel(modelsWithTools[1])] },
  ])
  const stopFakes = () => Promise.all(fakes.map((fake) => fake.stop()))
  const config = [
    '[discovery]',
    'local = false',
    ...fakes.flatMap(({ kind, url }) => ['[[nodes]]', `name = "${kind}"`, `kind = "${kind}"`, `url = "${url}"`]),
  ].join('\n')
  const fleet = await serve({ config }).catch(async (error: unknown) => {
    await stopFakes()
    throw error
  })
  await until(
    () => fleet.json<{ models: unknown[] }>('/api/v1/models'),
    ({ models }) => models.length === modelsWithTools.length,
    10_000,
  )
  return {
    fleet,
    fakes,
    stop: async () => {
      await fleet.end('SIGKILL')
      await stopFakes()
    },
  }
}
