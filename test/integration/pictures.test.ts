import { expect, test } from 'bun:test'
import { type Json, until } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'
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

/** A chat with one picture, in OpenAI's form. */
const withUrl = (url: string): object => ({
  model: 'v',
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
})

const chatsSeen = ({ fakes }: Bench): Json[] =>
  (fakes[0]?.log ?? []).filter(({ path }) => /\/chat(\/completions)?$/.test(path)).map(({ body }) => body)

test.each([
  `data:image/png;base64,${png}`,
  `data:image/png;charset=utf-8;base64,${png}`,
  `DATA:image/png;BASE64,${png}`,
  `data:image/png;base64,${png.slice(0, 4)}\r\n${png.slice(4)}`,
])('BL-M04 %j reaches an Ollama node as bare base64', (dataUrl) =>
  withRouter([seeing], {}, async (bench) => {
    const { status } = await post(bench.url, '/v1/chat/completions', withUrl(dataUrl))

    expect(status).toBe(200)
    expect(chatsSeen(bench).map(({ messages }) => messages[0].images)).toEqual([[png]])
  }),
)

test.each([
  ['image/png', png],
  ['image/jpeg', '/9j/4AAQSkZJRg=='],
])('BL-M04 a %s of an Ollama client reaches an OpenAI node as a data URL with its type', (type, picture) =>
  withRouter([{ ...seeing, kind: 'openai' }], {}, async (bench) => {
    const messages = [{ role: 'user', content: 'what?', images: [picture] }]
    const { status } = await post(bench.url, '/api/chat', { model: 'v', stream: false, messages })

    expect(status).toBe(200)
    expect(JSON.stringify(chatsSeen(bench))).toContain(`"url":"data:${type};base64,${picture}"`)
  }),
)

test('BL-M04 bad base64 is 400 without a node being asked, and no failure of the node', () =>
  withRouter([seeing], {}, async (bench) => {
    for (let time = 0; time < 6; time += 1) {
      const { status, json } = await post(bench.url, '/v1/chat/completions', withUrl('data:image/png;base64,*no*'))
      expect(status).toBe(400)
      expect(JSON.stringify(json)).toContain('not valid base64')
    }

    expect(chatsSeen(bench)).toEqual([])
    expect(bench.router.fleet.nodes()).toMatchObject([{ health: 'online', breaker: 'closed' }])
  }))
