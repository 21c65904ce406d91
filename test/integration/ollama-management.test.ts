import { expect, test } from 'bun:test'
import { startDisk } from '../support/ollama-disk'
import { withRouter } from '../support/router'
import { post } from './media-clients'

const fake = { kind: 'ollama', models: [] } as const

const withDisks = async (
  count: number,
  run: (bench: {
    readonly url: string
    readonly disks: readonly ReturnType<typeof startDisk>[]
    readonly last: () => Promise<Record<string, unknown>>
  }) => Promise<void>,
  options: Parameters<typeof startDisk>[0] = {},
): Promise<void> => {
  const disks = Array.from({ length: count }, () => startDisk(options))
  const specs = disks.map(() => fake)
  const describe = (index: number) => ({ url: disks[index]?.url ?? '' })
  try {
    await withRouter(specs, { describe }, ({ url, json }) =>
      run({ url, disks, last: async () => (await json('/api/v1/requests/last')) as Record<string, unknown> }),
    )
  } finally {
    for (const disk of disks) disk.stop()
  }
}

test('a pull goes to the only Ollama node, and its progress arrives line by line', () =>
  withDisks(1, async ({ url, disks, last }) => {
    const response = await fetch(`${url}/api/pull`, { method: 'POST', body: '{"model":"x"}' })
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect((await response.text()).trim().split('\n').at(-1)).toBe('{"status":"success"}')
    expect(disks[0]?.calls).toEqual([{ method: 'POST', path: '/api/pull', body: '{"model":"x"}' }])
    expect(await last()).toMatchObject({
      asked: { operation: 'ollama.pull', model: 'x' },
      outcome: { end: 'completed', node: 'a', status: 200 },
    })
  }))

test('with several Ollama nodes the one that X-Fleet-Node names does it, and without it none', () =>
  withDisks(2, async ({ url, disks }) => {
    const refused = await post(url, '/api/delete', {})
    expect(refused.status).toBe(405)
    const unclear = await post(url, '/api/copy', { source: 'x', destination: 'y' })
    expect(unclear.status).toBe(400)
    expect(String(unclear.json.error)).toContain('several nodes run Ollama')
    const done = await fetch(`${url}/api/copy`, {
      method: 'POST',
      headers: { 'x-fleet-node': 'b' },
      body: JSON.stringify({ source: 'x', destination: 'y' }),
    })
    expect([done.status, await done.text()]).toEqual([200, ''])
    expect(disks.map(({ calls }) => calls.length)).toEqual([0, 1])
  }))

test('the node’s own refusal of a delete is passed on', () =>
  withDisks(1, async ({ url, last }) => {
    const response = await fetch(`${url}/api/delete`, { method: 'DELETE', body: '{"model":"x"}' })
    expect(response.status).toBe(404)
    expect(((await response.json()) as { error: string }).error).toContain("model 'x' not found")
    expect(await last()).toMatchObject({ outcome: { end: 'rejected', status: 404, node: 'a' } })
  }))

test('files: whether one is there, and sending one', () =>
  withDisks(1, async ({ url, disks }) => {
    const ask = (digest: string, method: string, body?: string) =>
      fetch(`${url}/api/blobs/${digest}`, { method, ...(body === undefined ? {} : { body }) })
    expect((await ask('sha256:known', 'HEAD')).status).toBe(200)
    expect((await ask('sha256:other', 'HEAD')).status).toBe(404)
    expect((await ask('sha256:new', 'POST', 'GGUF')).status).toBe(201)
    expect(disks[0]?.calls.at(-1)?.body).toBe('GGUF')
  }))

test('BL-V02 a pull whose connection breaks is not sent again', () =>
  withDisks(
    1,
    async ({ url, disks, last }) => {
      const { status, json } = await post(url, '/api/pull', { model: 'x' })
      expect(status).toBe(502)
      expect(JSON.stringify(json)).toContain('not sent again')
      expect(disks[0]?.calls).toHaveLength(1)
      expect(await last()).toMatchObject({ outcome: { end: 'failed', retries: 0 } })
    },
    { hangUp: true },
  ))
