import { expect, test } from 'bun:test'
import { withMedia } from '../support/media-router'
import { openaiMedia } from '../support/media-servers'
import { withRouter } from '../support/router'
import { post } from './media-clients'

const scores = [0.2, -3.5, 7]
const llama = () =>
  openaiMedia(['ranker'], () =>
    Response.json({
      model: 'ranker.gguf',
      object: 'list',
      usage: { prompt_tokens: 21, total_tokens: 21 },
      results: scores.map((relevance_score, index) => ({ index, relevance_score })),
    }),
  )
const documents = ['a', 'b', 'c']

test.each(['/v1/rerank', '/rerank', '/v2/rerank', '/reranking', '/v1/reranking'])(
  '%s: one answer for both kinds of client, best first',
  async (path) => {
    const node = llama()
    await withMedia([['llamacpp', node]], async ({ url }) => {
      const { status, json } = await post(url, path, { model: 'ranker', query: 'q', documents, top_n: 2 })
      expect(status).toBe(200)
      expect(json).toMatchObject({
        object: 'list',
        model: 'ranker',
        usage: { prompt_tokens: 21, total_tokens: 21 },
        meta: { billed_units: { total_tokens: 21 } },
      })
      expect(json.results).toEqual([
        { index: 2, relevance_score: 7 },
        { index: 0, relevance_score: 0.2 },
      ])
      expect(node.calls.at(-1)).toMatchObject({ path: '/v1/rerank', json: { query: 'q', documents } })
    })
  },
)

test('documents that are objects go as texts and come back as they were', async () => {
  const node = llama()
  await withMedia([['llamacpp', node]], async ({ url }) => {
    const given = [{ text: 'a', id: 1 }, { text: 'b' }, 'c']
    const asked = { model: 'ranker', query: 'q', documents: given, return_documents: true }
    const { json } = await post(url, '/v1/rerank', asked)
    expect(node.calls.at(-1)?.json.documents).toEqual(['a', 'b', 'c'])
    expect((json.results as { document: unknown }[]).map(({ document }) => document)).toEqual([
      { text: 'c' },
      { text: 'a', id: 1 },
      { text: 'b' },
    ])
  })
})

test('a node that leaves scores out has failed', async () => {
  const node = openaiMedia(['ranker'], () => Response.json({ results: [{ index: 0, relevance_score: 1 }] }))
  await withMedia([['openai', node]], async ({ url }) => {
    expect((await post(url, '/v1/rerank', { model: 'ranker', query: 'q', documents })).status).toBe(502)
    expect((await post(url, '/v1/rerank', { model: 'ranker', query: 'q', documents: [] })).status).toBe(400)
  })
})

test('an Ollama has no such endpoint, and is not asked', () =>
  withRouter([{ kind: 'ollama', resident: ['m'] }], {}, async ({ url, fakes }) => {
    const { status, json } = await post(url, '/v1/rerank', { model: 'm', query: 'q', documents })
    expect(status).toBe(400)
    expect(JSON.stringify(json)).toContain('does not support rerank')
    expect(fakes[0]?.log.some(({ path }) => path.includes('rank'))).toBe(false)
  }))
