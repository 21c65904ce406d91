import { expect, test } from 'bun:test'
import { samplesOf } from '../support/exposition'
import { fastModel, type Json, readJson } from '../support/fakes'
import { withRouter } from '../support/router'

const alias = (name: string, models: readonly string[], acrossKinds = true) => ({ name, models, acrossKinds })

const fallbacks = (page: string): readonly unknown[] =>
  samplesOf(page)
    .filter(({ name }) => name === 'fleet_fallbacks_total')
    .map(({ labels, value }) => [labels.from, labels.to, value])

test('a stand-in that is in memory answers instead of a cold load, and everything says so', () =>
  withRouter(
    [{ kind: 'ollama', models: [fastModel('big'), fastModel('small')], resident: ['small'], memoryGb: 8 }],
    { aliases: [alias('fast', ['big', 'small'])] as never },
    async ({ chat, fakes, json, metrics, idle }) => {
      const answer = await chat({ model: 'fast' })

      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-fleet-model')).toBe('small:latest')
      expect(answer.headers.get('x-fleet-fallback')).toBe('small:latest')
      expect(answer.headers.get('x-fleet-why')).toBe('fallback; from=big')
      expect(await answer.text()).toContain('"model":"fast"')
      await idle()
      expect(fakes[0]?.loads).toEqual([])
      const record: Json = await json('/api/v1/requests/last')
      expect(record.asked.model).toBe('fast')
      expect(record.models).toEqual(['big', 'small'])
      expect(record.outcome.fallback).toBe('small:latest')
      expect(fallbacks(await metrics())).toEqual([['big', 'small:latest', 1]])

      // The first of the chain is no fallback, even when it had to be loaded.
      await (await chat({ model: 'big' })).text()
      const again = await chat({ model: 'fast' })
      expect(again.headers.get('x-fleet-fallback')).toBeNull()
      await again.text()
      await idle()
      expect(((await json('/api/v1/requests/last')) as Json).outcome.fallback).toBeUndefined()
    },
  ))

test('X-Fleet-Fallback names stand-ins after the chain of the alias', () =>
  withRouter(
    [{ kind: 'openai', models: [fastModel('名前:7b')] }],
    { aliases: [alias('smart', ['gone'])] as never },
    async ({ chat, json, metrics, idle }) => {
      const headers = { 'x-fleet-fallback': ` also-gone, ${encodeURIComponent('名前:7b')} ,` }

      const answer = await chat({ model: 'smart', headers, stream: false })

      expect(answer.status).toBe(200)
      expect(decodeURIComponent(answer.headers.get('x-fleet-fallback') ?? '')).toBe('名前:7b')
      expect((await readJson(answer)).model).toBe('smart')
      await idle()
      expect(((await json('/api/v1/requests/last')) as Json).models).toEqual(['gone', 'also-gone', '名前:7b'])
      expect(fallbacks(await metrics())).toEqual([['gone', '名前:7b', 1]])
      // Without it nothing stands in.
      expect((await chat({ model: 'smart' })).status).toBe(404)
    },
  ))

const picture = {
  messages: [
    {
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
    },
  ],
}

test('a stand-in that lacks what the request needs is never used, and with across_kinds = false not even for others', () =>
  withRouter(
    [
      {
        kind: 'ollama',
        models: [
          fastModel('eyes', { capabilities: ['completion', 'vision'] }),
          fastModel('text', { capabilities: ['completion'] }),
        ],
        resident: ['text'],
      },
    ],
    { aliases: [alias('see', ['eyes', 'text']), alias('see-strictly', ['eyes', 'text'], false)] as never },
    async ({ chat, fakes, json }) => {
      const modelFor = async (model: string, more = {}): Promise<string | null> => {
        const answer = await chat({ model, stream: false, more })
        await answer.text()
        return answer.headers.get('x-fleet-model')
      }

      expect(await modelFor('see')).toBe('text:latest')
      expect(await modelFor('see-strictly')).toBe('eyes:latest')
      const record: Json = await json('/api/v1/requests/last')
      expect(record.rounds[0].nodes.find(({ verdict }: Json) => verdict === 'eliminated')).toMatchObject({
        model: 'text:latest',
        reason: 'other_kind',
      })
      expect(await modelFor('see', picture)).toBe('eyes:latest')
      expect(fakes[0]?.loads.map(({ model }) => model)).toEqual(['eyes'])
    },
  ))

test('a model that the node lists and does not know gives way to its stand-in on the same node', () =>
  withRouter(
    [{ kind: 'openai', models: [fastModel('broken'), fastModel('works')] }],
    { aliases: [alias('any', ['broken', 'works'])] as never },
    async ({ chat, fakes, of, idle }) => {
      fakes[0]?.faults.add({
        type: 'status',
        status: 404,
        message: 'The model `broken` does not exist.',
        match: { model: 'broken' },
      })

      const answer = await chat({ model: 'any' })

      expect([answer.status, answer.headers.get('x-fleet-fallback')]).toEqual([200, 'works'])
      await answer.text()
      await idle()
      expect(of('attempt.failed').map(({ model, failure }) => [model, failure.class])).toEqual([
        ['broken', 'model_missing'],
      ])
    },
  ))
