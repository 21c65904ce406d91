import { expect, test } from 'bun:test'
import OpenAI from 'openai'
import { hashKey } from '../../src/config/hash-key'
import { until } from '../support/fakes'
import { withMedia } from '../support/media-router'
import { openaiMedia, sdVideoServer, videoServer } from '../support/media-servers'
import type { Bench } from '../support/router'
import { post, sendForm } from './media-clients'

const begin = async ({ url }: Bench, body: object = {}): Promise<Record<string, unknown>> =>
  (await post(url, '/v1/videos', { prompt: 'a cat walks', ...body })).json

const stateOf = async (bench: Bench, id: unknown): Promise<unknown> =>
  ((await bench.json(`/v1/videos/${id}`)) as Record<string, unknown>).status

const done = (bench: Bench, id: unknown): Promise<void> => {
  let status: unknown
  const look = (): boolean => {
    void stateOf(bench, id).then((now) => {
      status = now
    })
    return status === 'completed' || status === 'failed'
  }
  return until(look, 5_000)
}

test('a video is begun, followed and fetched under our id, on the node that makes it', async () => {
  const [one, two] = [videoServer('sora'), videoServer('sora')]
  await withMedia(
    [
      ['openai', one],
      ['openai', two],
    ],
    async (bench) => {
      const first = await begin(bench, { model: 'sora', seconds: '4' })
      const second = await begin(bench, { model: 'sora' })

      expect(first).toMatchObject({ object: 'video', status: 'queued', model: 'sora' })
      expect(first.id).not.toBe(second.id)
      expect([one, two].map(({ calls }) => calls.filter(({ method }) => method === 'POST').length)).toEqual([1, 1])
      await Promise.all([done(bench, first.id), done(bench, second.id)])
      expect(await bench.json(`/v1/videos/${first.id}`)).toMatchObject({ id: first.id, status: 'completed' })

      const fetched = await fetch(`${bench.url}/v1/videos/${first.id}/content?variant=video`)
      expect([fetched.headers.get('content-type'), await fetched.text()]).toEqual(['video/mp4', 'moving'])
      const asked = [one, two].map(({ calls }) => calls.filter(({ path }) => path === '/v1/videos/v1/content').length)
      expect(asked.sort()).toEqual([0, 1])
      expect(fetched.headers.get('x-fleet-node')).toBe(asked[0] === 1 ? 'b' : 'a')
    },
  )
})

test('the node’s slot is taken until the video is done, and its record says how it went', async () => {
  const states = ['queued', 'in_progress']
  const node = videoServer('sora', states)
  await withMedia([['openai', node, { maxConcurrency: 1 }]], async (bench) => {
    const { id } = await begin(bench, { model: 'sora' })
    expect(await bench.json('/api/v1/overview')).toMatchObject({ inFlight: 1 })
    // Its client has been answered, but its body is still in memory.
    expect(bench.router.buffered.bytes).toBeGreaterThan(0)
    const waits = begin(bench, { model: 'sora' })
    await until(() => bench.of('request.placed').length >= 2)
    expect(node.calls.filter(({ method }) => method === 'POST')).toHaveLength(1)

    const gone = await fetch(`${bench.url}/v1/videos/${id}`, { method: 'DELETE' })

    expect(await gone.json()).toEqual({ id, object: 'video.deleted', deleted: true })
    expect(await waits).toMatchObject({ object: 'video' })
    await until(() => node.calls.some(({ method, path }) => method === 'DELETE' && path === '/v1/videos/v1'))
    expect((await fetch(`${bench.url}/v1/videos/${id}`)).status).toBe(404)
  })
})

test('a video that the node gives up is a failed one, with the node’s words', async () => {
  await withMedia([['sdcpp', sdVideoServer(['generating', 'failed'])]], async (bench) => {
    const { id } = await begin(bench)
    await done(bench, id)
    expect(await bench.json(`/v1/videos/${id}`)).toMatchObject({ status: 'failed' })
    const content = await fetch(`${bench.url}/v1/videos/${id}/content`)
    expect([content.status, await content.json()]).toMatchObject([400, { error: { type: 'invalid_request_error' } }])
    await bench.idle()
    const [settled] = bench.of('request.settled').filter(({ outcome }) => outcome.end !== 'rejected')
    expect(settled?.outcome).toMatchObject({ end: 'incomplete', node: 'a' })
  })
})

test('a node that talks nonsense about its video has lost it, and the record does not call it completed', async () => {
  const node = openaiMedia(['sora'], ({ method }) =>
    method === 'POST' ? Response.json({ id: 'v1', status: 'queued' }) : new Response('{"id":7}'),
  )
  await withMedia([['openai', node]], async (bench) => {
    const { id } = await begin(bench, { model: 'sora' })
    await bench.idle()

    await done(bench, id)
    expect(await bench.json(`/v1/videos/${id}`)).toMatchObject({ status: 'failed', error: { code: 'upstream_failed' } })
    expect(bench.of('request.settled').at(0)?.outcome).toMatchObject({ end: 'incomplete', node: 'a' })
    node.stop()
    expect((await fetch(`${bench.url}/v1/videos/${id}`, { method: 'DELETE' })).status).toBe(200)
  })
})

test('the prompt that a node repeats is not kept', async () => {
  const state = { id: 'v1', status: 'completed', prompt: 'a cat walks', progress: 100, size: '8x8' }
  await withMedia([['openai', openaiMedia(['sora'], () => Response.json(state))]], async (bench) => {
    const video = await begin(bench, { model: 'sora' })
    const known = { object: 'video', model: 'sora', status: 'completed', progress: 100, size: '8x8' }

    expect(video).toEqual({ ...known, id: video.id })
    expect(await bench.json(`/v1/videos/${video.id}`)).toEqual(video)
  })
})

test.each([
  ['nothing', () => new Response(null, { status: 204 })],
  ['no JSON', () => new Response('done')],
  ['that it does not know it', () => Response.json({ error: { message: 'no such video' } }, { status: 404 })],
])('a video that is done is deleted once, also where the node answers %s', async (_, answer) => {
  const node = openaiMedia(['sora'], ({ method }) =>
    method === 'DELETE' ? answer() : Response.json({ id: 'v1', status: 'completed' }),
  )
  await withMedia([['openai', node]], async (bench) => {
    const { id } = await begin(bench, { model: 'sora' })
    const remove = (): Promise<Response> => fetch(`${bench.url}/v1/videos/${id}`, { method: 'DELETE' })
    const [first, second] = [await remove(), await remove()]

    expect([first.status, second.status]).toEqual([200, 404])
    expect(first.headers.get('x-fleet-node')).toBe('a')
    expect(node.calls.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
  })
})

test('a node that says nothing when its video is fetched or deleted is given up', async () => {
  const node = openaiMedia(['sora'], ({ method, path }) =>
    method === 'POST' && path === '/v1/videos'
      ? Response.json({ id: 'v1', status: 'completed' })
      : new Promise<Response>(() => {}),
  )
  await withMedia(
    [['openai', node]],
    async (bench) => {
      const { id } = await begin(bench, { model: 'sora' })
      const content = await fetch(`${bench.url}/v1/videos/${id}/content`)
      const deleted = await fetch(`${bench.url}/v1/videos/${id}`, { method: 'DELETE' })

      expect([content.status, deleted.status]).toEqual([504, 504])
      expect(await content.json()).toMatchObject({ fleet: { code: 'upstream_timeout' } })
      await bench.idle()
      const ends = bench.of('request.settled').map(({ outcome }) => outcome.end)
      expect(ends).toEqual(['completed', 'failed', 'failed'])
    },
    { limits: { firstTokenTimeoutMs: 100 } },
  )
})

test('a node that fails to delete a video has it still', async () => {
  const node = openaiMedia(['sora'], ({ method }) =>
    method === 'DELETE' ? new Response('oh', { status: 500 }) : Response.json({ id: 'v1', status: 'completed' }),
  )
  await withMedia([['openai', node]], async (bench) => {
    const { id } = await begin(bench, { model: 'sora' })

    expect((await fetch(`${bench.url}/v1/videos/${id}`, { method: 'DELETE' })).status).toBe(502)
    expect(await stateOf(bench, id)).toBe('completed')
  })
})

test('stable-diffusion.cpp makes videos for OpenAI’s clients, from a picture where there is one', async () => {
  const node = sdVideoServer()
  await withMedia([['sdcpp', node]], async (bench) => {
    const picture = new File([Buffer.from('png')], 'in.png', { type: 'image/png' })
    const fields = { prompt: 'it walks', seconds: '2', size: '832x480' }
    const begun = await sendForm(bench.url, '/v1/videos', fields, { input_reference: picture })
    const video = (await begun.json()) as Record<string, unknown>

    expect(video).toMatchObject({ object: 'video', status: 'queued', seconds: '2', size: '832x480', created_at: 5 })
    expect(node.calls[0]).toMatchObject({
      path: '/sdcpp/v1/vid_gen',
      json: { prompt: 'it walks', width: 832, height: 480, video_frames: 33, fps: 16, init_image: 'cG5n' },
    })
    await done(bench, video.id)
    const fetched = await fetch(`${bench.url}/v1/videos/${video.id}/content`)
    expect([fetched.headers.get('content-type'), await fetched.text()]).toEqual(['video/x-msvideo', 'moving'])
  })
})

test('a client that leaves before its video exists has it cancelled', async () => {
  const node = sdVideoServer(['generating'])
  await withMedia([['sdcpp', node, { maxConcurrency: 1 }]], async (bench) => {
    await begin(bench)
    const client = new AbortController()
    const body = JSON.stringify({ prompt: 'a dog' })
    const waits = fetch(`${bench.url}/v1/videos`, { method: 'POST', body, signal: client.signal })
    await until(() => bench.of('request.placed').length >= 2)
    client.abort()
    await waits.catch(() => {})
    await until(() => bench.of('request.settled').some(({ outcome }) => outcome.end === 'client_disconnected'))
    expect(node.calls.filter(({ path }) => path === '/sdcpp/v1/vid_gen')).toHaveLength(1)
  })
})

test('an unknown video, a bad wish and a fleet that makes none are told in OpenAI’s form', async () => {
  await withMedia([['openai', videoServer('sora')]], async ({ url, json }) => {
    for (const path of ['/v1/videos/video_none', '/v1/videos/video_none/content']) {
      const response = await fetch(`${url}${path}`)
      expect([response.status, await response.json()]).toMatchObject([
        404,
        { error: { type: 'invalid_request_error', param: 'video_id' }, fleet: { code: 'not_found' } },
      ])
    }
    expect((await fetch(`${url}/v1/videos/video_none`, { method: 'DELETE' })).status).toBe(404)
    expect((await post(url, '/v1/videos', { model: 'sora' })).json).toMatchObject({ error: { param: 'prompt' } })
    // Nothing is known of what the model can do, so it is nobody's choice but the client's.
    expect((await post(url, '/v1/videos', { prompt: 'a cat' })).status).toBe(404)
    expect(await json('/v1/videos')).toMatchObject({ object: 'list', data: [], has_more: false })
  })
})

test('a key sees no videos but its own', async () => {
  const keys = ['mine', 'theirs'].map((name) => ({
    name,
    sha256: hashKey(`fleet_${name}`),
    scopes: ['inference' as const],
  }))
  const as = (name: string) => ({ authorization: `Bearer fleet_${name}` })
  await withMedia(
    [['openai', videoServer('sora')]],
    async ({ url }) => {
      const { json } = await post(url, '/v1/videos', { model: 'sora', prompt: 'a cat' }, as('mine'))
      const status = async (name: string): Promise<number> =>
        (await fetch(`${url}/v1/videos/${json.id}`, { headers: as(name) })).status
      const listed = async (name: string): Promise<unknown> =>
        (await fetch(`${url}/v1/videos`, { headers: as(name) })).json()

      expect([await status('mine'), await status('theirs')]).toEqual([200, 404])
      expect(await listed('mine')).toMatchObject({ data: [{ id: json.id }] })
      expect(await listed('theirs')).toMatchObject({ data: [] })
    },
    { auth: { mode: 'keys', keys } },
  )
})

test('the OpenAI SDK begins, follows, fetches, lists and deletes a video', async () => {
  await withMedia([['openai', videoServer('sora')]], async (bench) => {
    const { videos } = new OpenAI({ baseURL: `${bench.url}/v1`, apiKey: 'any', maxRetries: 0 })
    const begun = await videos.create({ model: 'sora-2', prompt: 'a cat' }).catch((error: unknown) => error)
    expect(begun).toMatchObject({ status: 404, code: 'model_not_found' })

    const video = await videos.create({ model: 'sora' as never, prompt: 'a cat', seconds: '4' })
    await done(bench, video.id)

    expect(await videos.retrieve(video.id)).toMatchObject({ id: video.id, status: 'completed', model: 'sora' })
    expect(await (await videos.downloadContent(video.id)).text()).toBe('moving')
    expect((await Array.fromAsync(videos.list())).map(({ id }) => id)).toEqual([video.id])
    expect(await videos.delete(video.id)).toMatchObject({ id: video.id, deleted: true })
    expect(await videos.retrieve(video.id).catch((error: unknown) => error)).toMatchObject({ status: 404 })
  })
})
