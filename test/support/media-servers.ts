/** Small servers that hear, speak and draw, each saying what it was asked. */
export interface MediaCall {
  readonly method: string
  readonly path: string
  readonly contentType: string
  /** Of a form: its fields, files by name and type. */
  readonly form: Readonly<Record<string, string>>
  readonly json: Readonly<Record<string, unknown>>
  /** Of a form: as it came. */
  readonly raw: string
}

export interface MediaServer {
  readonly url: string
  readonly calls: readonly MediaCall[]
  stop(): void
}

type Answer = (call: MediaCall, request: Request) => Response | Promise<Response>

const formOf = async (request: Request): Promise<Record<string, string>> => {
  const form = await request.formData()
  return Object.fromEntries(
    [...form.entries()].map(([name, value]) => [
      name,
      typeof value === 'string' ? value : `${value.name} ${value.type} ${value.size}`,
    ]),
  )
}

/** `polls` are answered without being noted. */
const serve = (polls: Readonly<Record<string, () => Response>>, answer: Answer): MediaServer => {
  const calls: MediaCall[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname
      const poll = request.method === 'GET' ? polls[path] : undefined
      if (poll) return poll()
      const contentType = request.headers.get('content-type') ?? ''
      const isForm = contentType.startsWith('multipart/')
      const call = {
        method: request.method,
        path,
        contentType,
        form: isForm ? await formOf(request.clone() as Request) : {},
        raw: isForm ? await request.clone().text() : '',
        json: contentType.includes('json') ? ((await request.json().catch(() => ({}))) as Record<string, unknown>) : {},
      }
      calls.push(call)
      return answer(call, request)
    },
  })
  return { url: server.url.origin, calls, stop: () => void server.stop(true) }
}

export const picture = Buffer.from('not really a picture').toString('base64')

/** Any OpenAI-like server with these models. */
export const openaiMedia = (models: readonly string[], answer: Answer): MediaServer =>
  serve({ '/v1/models': () => Response.json({ data: models.map((id) => ({ id })) }) }, answer)

interface WhisperOptions {
  readonly text?: string
  readonly gate?: Promise<void>
  /** A file that it fails on. */
  readonly deafTo?: string
}

export const whisperServer = (options: WhisperOptions = {}): MediaServer =>
  serve({ '/health': () => Response.json({ status: 'ok' }) }, async ({ form }) => {
    await options.gate
    if (options.deafTo !== undefined && form.file?.startsWith(options.deafTo))
      return Response.json({ error: 'FFmpeg conversion failed.' }, { status: 500 })
    const text = options.text ?? 'hello'
    return form.response_format === 'srt' ? new Response(`1\n${text}\n`) : Response.json({ text })
  })

export const sdServer = (options: { readonly jobs?: readonly string[] } = {}): MediaServer => {
  const states = [...(options.jobs ?? ['queued', 'generating', 'completed'])]
  const capabilities = { model: { name: 'sd.gguf', stem: 'sd', path: '/m/sd.gguf' }, supported_modes: ['img_gen'] }
  return serve({ '/sdcpp/v1/capabilities': () => Response.json(capabilities) }, ({ path }) => {
    if (path === '/sdcpp/v1/img_gen') return Response.json({ id: 'job_1', poll_url: 'x' }, { status: 202 })
    if (path.endsWith('/cancel')) return Response.json({ status: 'cancelled' })
    const status = states.length > 1 ? states.shift() : states[0]
    const result = { output_format: 'png', images: [{ index: 0, b64_json: picture }] }
    return Response.json({ id: 'job_1', status, result: status === 'completed' ? result : null, error: null })
  })
}

/** Any server with OpenAI's videos; a video goes through these states, one a poll. */
export const videoServer = (model: string, states: readonly string[] = ['queued', 'in_progress', 'completed']) => {
  const left = [...states]
  const state = (status: string) => Response.json({ id: 'v1', object: 'video', model, status, progress: 7 })
  return serve({ '/v1/models': () => Response.json({ data: [{ id: model }] }) }, ({ method, path }) => {
    if (method === 'DELETE') return Response.json({ id: 'v1', deleted: true })
    if (path.endsWith('/content')) return new Response('moving', { headers: { 'content-type': 'video/mp4' } })
    return state((left.length > 1 ? left.shift() : left[0]) ?? 'queued')
  })
}

/** A stable-diffusion.cpp with a model for videos. */
export const sdVideoServer = (states: readonly string[] = ['generating', 'completed']): MediaServer => {
  const left = [...states]
  const model = { name: 'wan.gguf', stem: 'wan', path: '/m/wan.gguf' }
  return serve(
    { '/sdcpp/v1/capabilities': () => Response.json({ model, supported_modes: ['vid_gen'] }) },
    ({ path }) => {
      if (path === '/sdcpp/v1/vid_gen')
        return Response.json({ id: 'job_1', status: 'queued', created: 5 }, { status: 202 })
      if (path.endsWith('/cancel')) return Response.json({ status: 'cancelled' })
      const status = left.length > 1 ? left.shift() : left[0]
      const result = { mime_type: 'video/x-msvideo', fps: 16, b64_json: Buffer.from('moving').toString('base64') }
      return Response.json({
        id: 'job_1',
        status,
        created: 5,
        result: status === 'completed' ? result : null,
        error: null,
      })
    },
  )
}

/** A KoboldCpp that chats and makes music. */
export const koboldServer = (answer: Answer): MediaServer =>
  serve(
    {
      '/api/extra/version': () => Response.json({ result: 'KoboldCpp', version: '1.110', music: true }),
      '/api/v1/model': () => Response.json({ result: 'koboldcpp/chatty' }),
      '/api/extra/true_max_context_length': () => Response.json({ value: 8_192 }),
      '/api/extra/perf': () => Response.json({ queue: 0, idle: 1 }),
    },
    answer,
  )

export const a1111Server = (checkpoints: readonly string[]): MediaServer => {
  let current = checkpoints[0]
  return serve(
    {
      '/sdapi/v1/sd-models': () =>
        Response.json(checkpoints.map((name) => ({ title: `${name}.st`, model_name: name }))),
      '/sdapi/v1/options': () => Response.json({ sd_model_checkpoint: current }),
      '/sdapi/v1/progress': () => Response.json({ progress: 0, state: { job_count: 0 } }),
    },
    ({ path, json }) => {
      if (path === '/sdapi/v1/options') {
        current = String(json.sd_model_checkpoint)
        return Response.json(null)
      }
      return Response.json({ images: [picture], parameters: json, info: '{"seed":7}' })
    },
  )
}
