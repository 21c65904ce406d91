import { expect, test } from 'bun:test'
import { until } from '../support/fakes'
import { withRouter } from '../support/router'
import { post } from './media-clients'

const png = 'iVBORw0KGgo='
const model = (name: string, ...more: 'vision'[]) => ({
  name,
  sizeGb: 1,
  contextTokens: 8192,
  capabilities: ['completion', 'chat', 'tools', ...more] as const,
  prefillPerSecond: 1e6,
  decodePerSecond: 1e6,
})
const text = { kind: 'ollama', models: [model('t')], resident: ['t'] } as const
const seeing = { kind: 'ollama', models: [model('v', 'vision')], resident: ['v'] } as const

/** A picture and a question in every protocol. */
const asked = (name: string): readonly (readonly [string, object])[] => {
  const url = `data:image/png;base64,${png}`
  return [
    [
      '/v1/chat/completions',
      { model: name, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
    ],
    [
      '/v1/messages',
      {
        model: name,
        max_tokens: 9,
        messages: [
          {
            role: 'user',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }],
          },
        ],
      },
    ],
    ['/v1/responses', { model: name, input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }],
    ['/api/chat', { model: name, stream: false, messages: [{ role: 'user', content: 'what?', images: [png] }] }],
  ]
}

for (const [path, body] of asked('t')) {
  test(`BL-M02 ${path}: a picture for a model that cannot see is refused before any node is asked`, () =>
    withRouter([text], {}, async ({ url, fakes }) => {
      const { status, json } = await post(url, path, body)
      expect(status).toBe(400)
      expect(JSON.stringify(json)).toContain('does not support vision')
      expect(fakes[0]?.log.some(({ path: seen }) => seen === '/api/chat')).toBe(false)
    }))
}

for (const [path, body] of asked('v')) {
  test(`BL-M01 ${path}: a text model never stands in for one that sees`, () => {
    const policy = { use: 'residency', holdTimeoutMs: 300, rescoreEveryMs: 100, retries: 2 }
    const health = { pollEveryMs: 50, offlineAfter: 1 }
    return withRouter([text, seeing], { policy, health } as never, async ({ url, fakes, router }) => {
      fakes[1]?.faults.add({ type: 'refuse' })
      await until(() => router.fleet.nodes().some(({ name, health: now }) => name === 'b' && now === 'offline'))
      for (const headers of [{}, { 'x-fleet-fallback': 't' }] as Record<string, string>[]) {
        const { status, json } = await post(url, path, body, headers)
        expect([503, 529]).toContain(status)
        expect(JSON.stringify(json)).toContain("'v'")
      }
      expect(fakes[0]?.log.some(({ path: seen }) => seen === '/api/chat')).toBe(false)
    })
  })
}
