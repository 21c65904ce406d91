import { afterEach, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NodeView } from '../../src/ports/fleet'
import { binary, buildTimeoutMs, emptyFolder, serve, until } from '../support/binary'
import { startFakes } from '../support/fakes'

beforeAll(() => binary(), buildTimeoutMs)

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

test('the demo ends when a configuration with a node appears in the folder in which the router runs', async () => {
  const folder = emptyFolder()
  ends.push(folder.remove)
  const [node] = await startFakes([{ kind: 'llamacpp' }])
  ends.push(() => node?.stop())
  const fleet = await serve({ cwd: folder.path, env: { FLEET_DISCOVERY_LOCAL: 'false', HOME: folder.path } })
  ends.push(() => fleet.end('SIGKILL'))
  const names = async () => (await fleet.json<{ nodes: NodeView[] }>('/api/v1/nodes')).nodes.map(({ name }) => name)
  expect((await names()).length).toBeGreaterThan(1)

  writeFileSync(join(folder.path, 'fleet.toml'), `[[nodes]]\nname = "real"\nkind = "llamacpp"\nurl = "${node?.url}"\n`)

  await until(names, (now) => now.join() === 'real', 8_000)
  const answer = await fetch(`${fleet.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-fleet-node')).toBe('real')
}, 60_000)
