import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/domain/config'
import type { NodeKind } from '../../src/domain/node'
import { until } from '../support/fakes'
import { withMedia } from '../support/media-router'
import { type MediaServer, openaiMedia, sdVideoServer, videoServer } from '../support/media-servers'
import { type Bench, withRouter } from '../support/router'
import { post } from './media-clients'

type Video = Record<string, unknown>

const PROMPT = 'a cat walks over the piano'

const begin = async ({ url }: Bench, model?: string): Promise<Video> =>
  (await post(url, '/v1/videos', { prompt: PROMPT, ...(model && { model }) })).json

const look = async (bench: Bench, id: unknown): Promise<Video> => (await bench.json(`/v1/videos/${id}`)) as Video

/** How it stands once it is over. */
const ending = async (bench: Bench, id: unknown): Promise<Video> => {
  const before = performance.now() + 5_000
  for (;;) {
    const video = await look(bench, id)
    if (video.status === 'completed' || video.status === 'failed') return video
    if (performance.now() > before) throw new Error(`still ${JSON.stringify(video)}`)
    await Bun.sleep(10)
  }
}

const endsOf = (bench: Bench): unknown[] =>
  bench.of('request.settled').map(({ outcome }) => [outcome.end, outcome.code])

/** One router that begins a video, and after it another over the same folder and in front of the same server. */
const restarted = async (
  [kind, server]: readonly [NodeKind, MediaServer],
  after: (bench: Bench, video: Video, folder: string) => Promise<unknown>,
  backend: Config['state']['backend'] = 'sqlite',
): Promise<void> => {
  let video: Video = {}
  const before = async (bench: Bench): Promise<void> => {
    video = await begin(bench, kind === 'openai' ? 'sora' : undefined)
  }
  const folder = mkdtempSync(join(tmpdir(), 'fleet-videos-'))
  const setup = {
    state: { backend, path: folder },
    describe: () => ({ kind, url: server.url, maxConcurrency: 1 }),
  } as const
  try {
    await withRouter([{ kind: 'openai', models: [] }], setup, before)
    await withRouter([{ kind: 'openai', models: [] }], setup, (bench) => after(bench, video, folder))
  } finally {
    server.stop()
    rmSync(folder, { recursive: true })
  }
}

test('a video that is never done fails after limits.video_timeout: its node hears of it, its slot is free, its record settles once', async () => {
  const node = videoServer('sora', ['queued', 'in_progress'])
  await withMedia(
    [['openai', node, { maxConcurrency: 1 }]],
    async (bench) => {
      const { id } = await begin(bench, 'sora')
      const next = begin(bench, 'sora')

      const error = { code: 'upstream_timeout', message: 'The video took longer than 0 s (limits.video_timeout).' }
      expect(await ending(bench, id)).toMatchObject({ id, status: 'failed', error })
      expect(node.calls.filter(({ method }) => method === 'DELETE').length).toBeGreaterThan(0)
      expect(await next).toMatchObject({ status: 'in_progress' })
      await bench.idle()
      expect(endsOf(bench)).toEqual([
        ['incomplete', 'total_cap'],
        ['incomplete', 'total_cap'],
      ])
    },
    { limits: { videoTimeoutMs: 400 } },
  )
})

test('limits.total_timeout is for answers, not for videos', async () => {
  const setup = { limits: { totalTimeoutMs: 300 } }
  await withMedia(
    [['openai', videoServer('sora', ['queued', 'in_progress', 'completed'])]],
    async (bench) => {
      const { id } = await begin(bench, 'sora')
      expect(await ending(bench, id)).toMatchObject({ status: 'completed' })
    },
    setup,
  )
})

test('a node that has forgotten the video that it was making made none: it failed, and the slot is free', async () => {
  const node = openaiMedia(['sora'], ({ method }) =>
    method === 'POST'
      ? Response.json({ id: 'v1', status: 'in_progress' })
      : Response.json({ error: { message: 'no such video' } }, { status: 404 }),
  )
  await withMedia([['openai', node]], async (bench) => {
    const { id } = await begin(bench, 'sora')

    expect(await ending(bench, id)).toMatchObject({ status: 'failed', error: { code: 'gone' } })
    await bench.idle()
    expect(endsOf(bench)).toEqual([['incomplete', 'error_event']])
  })
})

test('a node that dies over a video has lost it: it failed, the record says so once, and the slot is free', async () => {
  const node = videoServer('sora', ['queued', 'in_progress'])
  await withMedia([['openai', node]], async (bench) => {
    const { id } = await begin(bench, 'sora')
    node.stop()

    const message = 'the node could not be asked for the job any more'
    expect(await ending(bench, id)).toMatchObject({ status: 'failed', error: { code: 'upstream_failed', message } })
    await bench.idle()
    expect(endsOf(bench)).toEqual([['incomplete', 'protocol']])
  })
})

test('a video outlives the router: its node is asked how it stands, and no slot is held for it', async () => {
  const node = videoServer('sora', ['queued', 'in_progress', 'in_progress', 'completed'])
  await restarted(['openai', node], async (bench, { id }, folder) => {
    expect(node.calls.filter(({ method }) => method === 'DELETE')).toEqual([])
    expect(await bench.json('/v1/videos')).toMatchObject({ data: [{ id, model: 'sora', status: 'queued' }] })
    expect(await bench.json('/api/v1/overview')).toMatchObject({ inFlight: 0 })

    const fleet = { node: 'a', message: expect.stringContaining('The router was restarted') }
    expect(await look(bench, id)).toMatchObject({ id, model: 'sora', status: 'in_progress', fleet })
    expect(node.calls.at(-1)).toMatchObject({ method: 'GET', path: '/v1/videos/v1' })
    const done = await ending(bench, id)
    expect(done).toMatchObject({ id, status: 'completed' })
    expect(done.fleet).toBeUndefined()
    const asked = node.calls.length
    await look(bench, id)
    expect(node.calls).toHaveLength(asked)

    expect(await (await fetch(`${bench.url}/v1/videos/${id}/content`)).text()).toBe('moving')
    const files = await Promise.all(['fleet.db', 'fleet.db-wal'].map((name) => readFile(join(folder, name), 'latin1')))
    expect(files.join('')).toContain(String(id))
    expect(files.join('')).not.toContain(PROMPT)
  })
})

test('after a restart a video that its node does not know any more has failed', async () => {
  let isKnown = true
  const node = openaiMedia(['sora'], () =>
    isKnown
      ? Response.json({ id: 'v1', status: 'in_progress' })
      : Response.json({ error: { message: 'Video v1 not found' } }, { status: 404 }),
  )
  await restarted(['openai', node], async (bench, { id }) => {
    isKnown = false
    const error = { code: 'upstream_failed', message: 'a does not know the video any more.' }
    expect(await look(bench, id)).toMatchObject({ status: 'failed', error })
    const asked = node.calls.length
    expect(await look(bench, id)).toMatchObject({ status: 'failed', error })
    expect(node.calls).toHaveLength(asked)
  })
})

test('a video that is deleted while its node is still asked how it stands does not come back', async () => {
  const asked = Promise.withResolvers<void>()
  const deleted = Promise.withResolvers<void>()
  let isSlow = false
  const node = openaiMedia(['sora'], async ({ method }) => {
    if (method === 'GET' && isSlow) {
      asked.resolve()
      await deleted.promise
    }
    return Response.json({ id: 'v1', status: 'in_progress' })
  })
  await restarted(['openai', node], async (bench, { id }) => {
    isSlow = true
    const looked = look(bench, id)
    await asked.promise
    expect((await fetch(`${bench.url}/v1/videos/${id}`, { method: 'DELETE' })).status).toBe(200)
    deleted.resolve()
    await looked
    expect(await bench.json('/v1/videos')).toMatchObject({ data: [] })
  })
})

test('after a restart a node that cannot be asked is a failure of this question, not of the video', async () => {
  const node = videoServer('sora', ['in_progress'])
  await restarted(['openai', node], async (bench, { id }) => {
    node.stop()
    expect((await fetch(`${bench.url}/v1/videos/${id}`)).status).toBe(502)
    expect(await bench.json('/v1/videos')).toMatchObject({ data: [{ id, status: 'in_progress' }] })
  })
})

test('after a restart a video of stable-diffusion.cpp is asked for and fetched as its server has it', async () => {
  const node = sdVideoServer(['generating', 'completed'])
  await restarted(['sdcpp', node], async (bench, { id }) => {
    expect(node.calls.filter(({ path }) => path.endsWith('/cancel'))).toEqual([])
    expect(await ending(bench, id)).toMatchObject({ id, status: 'completed', progress: 100 })
    expect(await (await fetch(`${bench.url}/v1/videos/${id}/content`)).text()).toBe('moving')
  })
})

test.each([
  ['openai', () => videoServer('sora', ['in_progress']), 'DELETE', '/v1/videos/v1'],
  ['sdcpp', () => sdVideoServer(['generating']), 'POST', '/sdcpp/v1/jobs/job_1/cancel'],
] as const)(
  'after a restart a video that is still being made on %s can be given up',
  async (kind, start, method, path) => {
    const node = start()
    await restarted([kind, node], async ({ url }, { id }) => {
      expect((await fetch(`${url}/v1/videos/${id}`, { method: 'DELETE' })).status).toBe(200)
      expect(node.calls.at(-1)).toMatchObject({ method, path })
      expect((await fetch(`${url}/v1/videos/${id}`)).status).toBe(404)
    })
  },
)

test('with state.backend = "memory" nothing is remembered, so a shutdown gives the video up', async () => {
  const node = videoServer('sora', ['in_progress'])
  await restarted(
    ['openai', node],
    async ({ url }, { id }) => {
      await until(() => node.calls.some(({ method }) => method === 'DELETE'))
      expect((await fetch(`${url}/v1/videos/${id}`)).status).toBe(404)
    },
    'memory',
  )
})
