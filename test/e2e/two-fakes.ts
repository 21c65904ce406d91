/** Two scripted engines of unlike protocols behind one executable, for what the small real model cannot do: tools. */
import { afterAll, beforeAll, describe, test } from 'bun:test'
import type { FakeNode } from '../../src/sim/fake/options'
import { binary, buildTimeoutMs, type Running, serve, until } from '../support/binary'
import { fastModel, startFakes } from '../support/fakes'

/** One model on each engine, so that asking for it chooses the protocol that the answer comes in. */
export const modelsWithTools = ['at-ollama', 'at-vllm'] as const

/** Makes the scripted engines call the tool of that name. */
export const callFor = (tool: string): string => `Please call ${tool} for Oslo.`

/** A tool that they may call. */
export const weatherTool = {
  name: 'weather',
  description: 'Weather of a city',
  parameters: {
    type: 'object' as const,
    properties: { city: { type: 'string' as const } },
    required: ['city'],
  },
}

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

/** One test for each client library and each of the models: `round` asks for a call, answers it, and checks what comes back. */
export const describeToolRounds = <Library extends { readonly name: string }>(
  libraries: readonly Library[],
  round: (library: Library, fleetUrl: string, model: string) => Promise<void>,
): void => {
  let rig: FakeRig

  beforeAll(async () => {
    await binary()
    rig = await startFakeRig()
  }, buildTimeoutMs)
  afterAll(() => rig?.stop())

  describe.each(libraries)('$name', (library) => {
    test.each(modelsWithTools)(
      'is told the call, answers it and goes on to an answer, whole and streamed: %s',
      (name) => round(library, rig.fleet.url, name),
    )
  })
}
