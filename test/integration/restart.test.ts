import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodeView } from '../../src/ports/fleet'
import { fastModel, startFakes, until } from '../support/fakes'
import { spawnServed } from '../support/served'

const NODES = 20
const MODELS = 10
/** This node answers polls late after the restart. */
const SLOW = 7
const SLOW_MS = 4_000
/** From the moment at which it listens again. */
const ROUTABLE_WITHIN_MS = 2_000

const modelOf = (node: number, index: number): string => `m${node}-${index}`

test('BL-K08 killed under load and started again: 19 of 20 nodes in 2 s, and until then requests are held, not 404', async () => {
  const fakes = await startFakes(
    Array.from({ length: NODES }, (_, node) => ({
      kind: 'ollama' as const,
      models: Array.from({ length: MODELS }, (_entry, index) => fastModel(modelOf(node, index))),
    })),
  )
  const folder = mkdtempSync(join(tmpdir(), 'fleet-restart-'))
  const nodes = fakes.map(({ url }, at) => `[[nodes]]\nname = "n${at}"\nkind = "ollama"\nurl = "${url}"\n`)
  writeFileSync(join(folder, 'fleet.toml'), nodes.join(''))
  const first = spawnServed(folder)
  let second: ReturnType<typeof spawnServed> | undefined
  try {
    await until(() => /Ready +http/.test(first.said()), 15_000)
    const [, url = ''] = /Ready +(http:\/\/127\.0\.0\.1:\d+)/.exec(first.said()) ?? []
    const ask = (model: string): Promise<number | string> =>
      fetch(`${url}/api/chat`, {
        method: 'POST',
        body: JSON.stringify({ model, stream: false, messages: [{ role: 'user', content: 'hi' }] }),
      }).then(
        async (answer) => {
          await answer.text()
          return answer.status
        },
        () => 'unreachable',
      )
    const nodesNow = async (): Promise<readonly NodeView[]> =>
      ((await (await fetch(`${url}/api/v1/nodes`)).json()) as { nodes: NodeView[] }).nodes

    const load = Array.from({ length: 40 }, (_, at) => ask(modelOf(at % NODES, at % MODELS)))
    expect(await Promise.all(load)).toEqual(load.map(() => 200))
    const underWay = Array.from({ length: 40 }, (_, at) => ask(modelOf(at % NODES, 9 - (at % MODELS))))
    await Bun.sleep(10)
    first.child.kill('SIGKILL')
    await first.child.exited
    await Promise.all(underWay)

    fakes[SLOW]?.faults.add({ type: 'slow', ms: SLOW_MS, on: 'polls' })
    second = spawnServed(folder, url.replace('http://', ''))
    while ((await fetch(`${url}/healthz`).catch(() => undefined)) === undefined) await Bun.sleep(5)
    const listening = performance.now()
    const early = Array.from({ length: NODES }, (_, node) => ask(modelOf(node, node % MODELS)))

    const online = async () => (await nodesNow()).filter(({ health }) => health === 'online').length
    while ((await online()) < NODES - 1 && performance.now() - listening < ROUTABLE_WITHIN_MS) await Bun.sleep(20)
    expect(await online()).toBeGreaterThanOrEqual(NODES - 1)
    expect(performance.now() - listening).toBeLessThan(ROUTABLE_WITHIN_MS + 200)
    const everyModel = (await nodesNow()).filter(({ models }) => models.length === MODELS)
    expect(everyModel.length).toBeGreaterThanOrEqual(NODES - 1)

    expect(await Promise.all(early)).toEqual(early.map(() => 200))
    expect((await nodesNow())[SLOW]).toMatchObject({ health: 'online', models: { length: MODELS } })
  } finally {
    first.child.kill('SIGKILL')
    second?.child.kill('SIGKILL')
    await Promise.all([first.child.exited, second?.child.exited])
    await Promise.all(fakes.map((fake) => fake.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
}, 30_000)
