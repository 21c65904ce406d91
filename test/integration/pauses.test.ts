import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodeView } from '../../src/ports/fleet'
import { type Bench, withRouter } from '../support/router'

const fake = { kind: 'llamacpp' as const, resident: ['m'] }

const statesOf = async ({ json }: Bench): Promise<Record<string, string>> => {
  const { nodes } = (await json('/api/v1/nodes')) as { nodes: NodeView[] }
  return Object.fromEntries(nodes.map(({ name, state, admission }) => [name, `${state}/${admission}`]))
}

const say = async ({ url }: Bench, node: string, verb: string): Promise<number> =>
  (await fetch(`${url}/api/v1/nodes/${node}/${verb}`, { method: 'POST' })).status

test('what an operator paused or drains is so after a restart, gets nothing, and is open once it is resumed', async () => {
  const path = mkdtempSync(join(tmpdir(), 'fleet-pauses-'))
  const run = (nodes: number, use: (bench: Bench) => Promise<void>): Promise<void> =>
    withRouter(Array(nodes).fill(fake), { state: { backend: 'sqlite', path }, log: { level: 'silent' } }, use)
  try {
    await run(3, async (bench) => {
      expect([await say(bench, 'a', 'pause'), await say(bench, 'b', 'drain')]).toEqual([200, 200])
    })

    await run(3, async (bench) => {
      const paused = { a: 'paused/paused', b: 'draining/draining', c: 'online/open' }
      expect(await statesOf(bench)).toEqual(paused)
      const reply = await bench.chat()
      expect([reply.status, reply.headers.get('x-fleet-node')]).toEqual([200, 'c'])
      await reply.text()
      expect(await say(bench, 'a', 'resume')).toBe(200)
    })

    // Without the node that is drained, and then with it again.
    await run(1, async (bench) => expect(await statesOf(bench)).toEqual({ a: 'online/open' }))
    await run(2, async (bench) => expect(await statesOf(bench)).toEqual({ a: 'online/open', b: 'online/open' }))
  } finally {
    rmSync(path, { recursive: true })
  }
})
