import { expect, test } from 'bun:test'
import { until } from '../support/fakes'
import { withMedia } from '../support/media-router'
import { a1111Server, koboldServer, openaiMedia, picture, sdServer, whisperServer } from '../support/media-servers'
import { post, sendForm, wav } from './media-clients'

test('a transcription goes on with its file name and type, and under the node’s name for the model', async () => {
  const node = openaiMedia(['local-whisper'], () => Response.json({ text: 'hello' }))
  await withMedia(
    [['openai', node]],
    async ({ url, json }) => {
      const form = (model: string) =>
        [
          '--sep',
          'Content-Disposition: form-data; name="model"',
          '',
          model,
          '--sep',
          'Content-Disposition: form-data; name="file"; filename="meeting ü.opus"',
          'Content-Type: audio/x-odd; rate=8000',
          '',
          'RIFF\r\n--not the end\r\n',
          '--sep--',
          '',
        ].join('\r\n')
      const response = await fetch(`${url}/v1/audio/transcriptions`, {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary="sep"' },
        body: form('whisper-1'),
      })
      expect(await response.json()).toEqual({ text: 'hello' })
      expect(node.calls[0]).toMatchObject({ path: '/v1/audio/transcriptions', raw: form('local-whisper') })
      expect(await json('/api/v1/requests/last')).toMatchObject({
        asked: { operation: 'openai.transcriptions', model: 'whisper-1' },
        outcome: { end: 'completed', model: 'local-whisper' },
      })
    },
    { aliases: [{ name: 'whisper-1', models: ['local-whisper'], acrossKinds: true }] },
  )
})

test('whisper.cpp is asked at its own endpoint, and translates where that is asked', async () => {
  const node = whisperServer()
  await withMedia([['whispercpp', node]], async ({ url }) => {
    const fields = { model: 'whisper-1', response_format: 'srt' }
    const said = await sendForm(url, '/v1/audio/translations', fields, { file: wav() })
    expect([said.status, await said.text()]).toEqual([200, '1\nhello\n'])
    expect(node.calls[0]).toMatchObject({ path: '/inference', form: { translate: 'true', response_format: 'srt' } })
    const chat = await post(url, '/v1/chat/completions', {
      model: 'whisper',
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect([chat.status, node.calls.length]).toEqual([400, 1])
  })
})

test('without a model a transcription goes to the node that is free, turn and turn about', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const [first, second] = [whisperServer({ gate }), whisperServer({ gate })]
  await withMedia(
    [
      ['whispercpp', first, { models: ['large'] }],
      ['whispercpp', second, { models: ['small'] }],
    ],
    async ({ url, of }) => {
      const ask = () => sendForm(url, '/v1/audio/transcriptions', {}, { file: wav() })
      const two = [ask(), ask()]
      await until(() => first.calls.length + second.calls.length === 2)
      const third = ask()
      await until(() => of('request.placed').length >= 3)
      expect([first.calls.length, second.calls.length]).toEqual([1, 1])
      open()
      for (const response of await Promise.all([...two, third]))
        expect(await response.json()).toEqual({ text: 'hello' })
      await ask()
      expect([first.calls.length, second.calls.length]).toEqual([2, 2])
    },
  )
})

test('a form that is none, and one without a file, are the client’s errors', async () => {
  const node = whisperServer()
  await withMedia([['whispercpp', node]], async ({ url }) => {
    expect((await post(url, '/v1/audio/transcriptions', { model: 'whisper-1' })).status).toBe(400)
    expect((await sendForm(url, '/v1/audio/transcriptions', { model: 'whisper-1' }, {})).status).toBe(400)
    expect(node.calls).toEqual([])
  })
})

test('speech arrives as the node makes it, with the node’s own type', async () => {
  let next = () => {}
  const gate = new Promise<void>((resolve) => {
    next = resolve
  })
  const body = () =>
    new ReadableStream({
      async start(to) {
        to.enqueue(Buffer.from('first'))
        await gate
        to.enqueue(Buffer.from('second'))
        to.close()
      },
    })
  const node = openaiMedia(['tts'], () => new Response(body(), { headers: { 'content-type': 'audio/wav' } }))
  await withMedia([['openai', node]], async ({ url }) => {
    const response = await fetch(`${url}/v1/audio/speech`, {
      method: 'POST',
      body: JSON.stringify({ model: 'tts', input: 'hi', voice: 'x' }),
    })
    expect(response.headers.get('content-type')).toBe('audio/wav')
    const reader = response.body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first')
    next()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('second')
  })
})

test('pictures of an OpenAI-like server pass through', async () => {
  const node = openaiMedia(['draw'], () => Response.json({ created: 1, data: [{ b64_json: picture }] }))
  await withMedia([['openai', node]], async ({ url }) => {
    const { json } = await post(url, '/v1/images/generations', { model: 'draw', prompt: 'a cat', size: '64x64' })
    expect(json).toEqual({ created: 1, data: [{ b64_json: picture }] })
    expect(node.calls[0]?.json).toEqual({ model: 'draw', prompt: 'a cat', size: '64x64' })

    const drawn = await post(url, '/sdapi/v1/txt2img', {
      prompt: 'a dog',
      width: 64,
      height: 32,
      override_settings: { sd_model_checkpoint: 'draw' },
    })
    expect(drawn.json).toMatchObject({ images: [picture], parameters: { prompt: 'a dog' } })
    expect(node.calls[1]?.json).toMatchObject({ model: 'draw', n: 1, size: '64x32', response_format: 'b64_json' })

    const image = new File([Buffer.from('png')], 'in.png', { type: 'image/png' })
    await sendForm(url, '/v1/images/edits', { model: 'draw', prompt: 'red' }, { image })
    expect(node.calls[2]).toMatchObject({ path: '/v1/images/edits', form: { image: 'in.png image/png 3' } })

    const init = Buffer.from('png').toString('base64')
    await post(url, '/sdapi/v1/img2img', {
      prompt: 'blue',
      init_images: [`data:image/png;base64,${init}`],
      override_settings: { sd_model_checkpoint: 'draw' },
    })
    expect(node.calls[3]).toMatchObject({ path: '/v1/images/edits', form: { image: 'image.png image/png 3' } })
  })
})

test('stable-diffusion.cpp draws by jobs, for either kind of client', async () => {
  const node = sdServer()
  await withMedia([['sdcpp', node]], async ({ url }) => {
    const { status, json } = await post(url, '/v1/images/generations', { prompt: 'a cat', n: 2, size: '64x32' })
    expect(status).toBe(200)
    expect(json).toMatchObject({ output_format: 'png', data: [{ b64_json: picture }] })
    expect(node.calls[0]).toMatchObject({
      path: '/sdcpp/v1/img_gen',
      json: { prompt: 'a cat', batch_count: 2, width: 64, height: 32 },
    })
    const drawn = await post(url, '/sdapi/v1/txt2img', { prompt: 'a dog', steps: 4 })
    expect(drawn.json.images).toEqual([picture])
  })
})

test('a client that leaves has its job cancelled', async () => {
  const node = sdServer({ jobs: ['generating'] })
  await withMedia([['sdcpp', node]], async ({ url }) => {
    const client = new AbortController()
    const body = JSON.stringify({ prompt: 'a cat' })
    const asked = fetch(`${url}/v1/images/generations`, { method: 'POST', body, signal: client.signal })
    asked.catch(() => {})
    await until(() => node.calls.length >= 2)
    client.abort()
    await until(() =>
      node.calls.some(({ method, path }) => method === 'POST' && path === '/sdcpp/v1/jobs/job_1/cancel'),
    )
  })
})

test('a job that failed is a failure of the node', async () => {
  const node = sdServer({ jobs: ['failed'] })
  await withMedia([['sdcpp', node]], async ({ url }) => {
    expect((await post(url, '/v1/images/generations', { prompt: 'a cat' })).status).toBe(502)
  })
})

test('an A1111 gets the checkpoint by name, and its answer goes to its clients as it is', async () => {
  const node = a1111Server(['anything', 'sdxl'])
  await withMedia([['a1111', node]], async ({ url }) => {
    const { json } = await post(url, '/v1/images/generations', { model: 'sdxl', prompt: 'a cat', size: '64x32' })
    expect(json).toMatchObject({ data: [{ b64_json: picture }] })
    expect(node.calls.at(-1)).toMatchObject({
      path: '/sdapi/v1/txt2img',
      json: { prompt: 'a cat', width: 64, height: 32, override_settings: { sd_model_checkpoint: 'sdxl' } },
    })
    const own = await post(url, '/sdapi/v1/txt2img', { prompt: 'a dog', hr_scale: 2 })
    expect(own.json).toMatchObject({ images: [picture], info: '{"seed":7}' })
    expect(node.calls.at(-1)?.json).toMatchObject({ hr_scale: 2, prompt: 'a dog' })
  })
})

test('variations of a picture pass through, or are drawn from it without words', async () => {
  const nodes = [
    openaiMedia(['draw'], () => Response.json({ created: 1, data: [{ b64_json: picture }] })),
    sdServer({ jobs: ['completed'] }),
    a1111Server(['sdxl']),
  ] as const
  const [own, sd, a1111] = nodes
  await withMedia(
    [
      ['openai', own],
      ['sdcpp', sd],
      ['a1111', a1111],
    ],
    async ({ url }) => {
      const image = new File([Buffer.from('png')], 'in.png', { type: 'image/png' })
      for (const model of ['draw', 'sd', 'sdxl']) {
        const response = await sendForm(url, '/v1/images/variations', { model, n: '2' }, { image })
        expect([response.status, await response.json()]).toMatchObject([200, { data: [{ b64_json: picture }] }])
      }
      expect(own.calls[0]).toMatchObject({
        path: '/v1/images/variations',
        form: { n: '2', image: 'in.png image/png 3' },
      })
      expect(sd.calls[0]).toMatchObject({ json: { prompt: '', batch_count: 2, init_image: 'cG5n' } })
      expect(a1111.calls[0]).toMatchObject({ path: '/sdapi/v1/img2img', json: { prompt: '', init_images: ['cG5n'] } })
      const empty = await sendForm(url, '/v1/images/variations', { model: 'draw' }, {})
      expect([empty.status, await empty.json()]).toMatchObject([400, { error: { param: 'image' } }])
    },
  )
})

test('variations that no node knows are refused in the form of OpenAI', async () => {
  const node = openaiMedia(['draw'], () => Response.json({ detail: 'Not Found' }, { status: 404 }))
  await withMedia([['openai', node]], async ({ url }) => {
    const image = new File([Buffer.from('png')], 'in.png', { type: 'image/png' })
    const response = await sendForm(url, '/v1/images/variations', { model: 'draw' }, { image })
    expect([response.status, await response.json()]).toMatchObject([404, { error: { type: 'invalid_request_error' } }])
    const chat = await sendForm(url, '/v1/images/variations', {}, { image })
    expect([chat.status, await chat.json()]).toMatchObject([404, { error: { code: 'model_not_found' } }])
  })
})

test('music is planned and made on a KoboldCpp that can, without a name for its model', async () => {
  const node = koboldServer(({ path, json }) =>
    path.endsWith('/prepare')
      ? Response.json({ ...json, bpm: 90 })
      : new Response('RIFF', { headers: { 'content-type': 'audio/wav' } }),
  )
  await withMedia(
    [
      ['openai', openaiMedia(['chatty'], () => Response.json({}))],
      ['koboldcpp', node],
    ],
    async ({ url, json }) => {
      const plan = await post(url, '/api/extra/music/prepare', { caption: 'a waltz' })
      expect(plan.json).toEqual({ caption: 'a waltz', bpm: 90 })
      const song = await fetch(`${url}/api/extra/music/generate`, { method: 'POST', body: JSON.stringify(plan.json) })
      expect([song.headers.get('content-type'), await song.text()]).toEqual(['audio/wav', 'RIFF'])
      expect(node.calls.map(({ path }) => path)).toEqual(['/api/extra/music/prepare', '/api/extra/music/generate'])
      expect(await json('/api/v1/requests/last')).toMatchObject({
        asked: { operation: 'koboldcpp.music_generate' },
        outcome: { end: 'completed', node: 'b', model: 'koboldcpp/music' },
      })
      const elsewhere = await post(url, '/api/extra/music/generate', { model: 'chatty', caption: 'a waltz' })
      expect([elsewhere.status, elsewhere.json]).toMatchObject([400, { error: { type: 'invalid_request_error' } }])
    },
  )
})

test('a server whose pictures fail is left alone with them, and goes on with text', async () => {
  const node = openaiMedia(['m'], ({ path }) =>
    path.startsWith('/v1/images')
      ? Response.json({ error: { message: 'not implemented' } }, { status: 501 })
      : Response.json({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }),
  )
  await withMedia(
    [['openai', node]],
    async ({ url, json, chat }) => {
      expect((await post(url, '/v1/images/generations', { model: 'm', prompt: 'a cat' })).status).toBe(502)
      let lanes: unknown
      await until(() => {
        void json('/api/v1/nodes/a').then((view) => {
          lanes = (view as { lanesDown?: unknown }).lanesDown
        })
        return lanes !== undefined
      }, 5_000)
      expect(lanes).toEqual(['image'])
      expect((await chat({ model: 'm', stream: false })).status).toBe(200)
      expect((await post(url, '/v1/images/generations', { model: 'm', prompt: 'a cat' })).status).toBe(503)
      expect(node.calls.filter(({ path }) => path === '/v1/images/generations')).toHaveLength(1)
    },
    { health: { pollEveryMs: 50 }, policy: { holdTimeoutMs: 100 } },
  )
})
