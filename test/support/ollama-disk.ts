/** What one call to a disk was: method, path and body. */
export interface DiskCall {
  readonly method: string
  readonly path: string
  readonly body: string
}

/** An Ollama of which only lists and the disk answer. `hangUp` closes the connection after a call was read. */
export const startDisk = (options: { readonly hangUp?: boolean } = {}) => {
  const calls: DiskCall[] = []
  const lines = [
    '{"status":"pulling manifest"}',
    '{"status":"pulling","total":9,"completed":9}',
    '{"status":"success"}',
  ]
  const pull = () =>
    new Response(
      new ReadableStream({
        async start(to) {
          for (const line of lines) {
            to.enqueue(`${line}\n`)
            await Bun.sleep(5)
          }
          to.close()
        },
      }),
      { headers: { 'content-type': 'application/x-ndjson' } },
    )
  const polls: Readonly<Record<string, () => Response>> = {
    '/': () => new Response('Ollama is running'),
    '/api/version': () => Response.json({ version: '0.33.0' }),
    '/api/tags': () => Response.json({ models: [] }),
    '/api/ps': () => Response.json({ models: [] }),
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request, self) {
      const path = new URL(request.url).pathname
      const poll = polls[path]
      if (poll) return poll()
      calls.push({ method: request.method, path, body: await request.text() })
      if (options.hangUp) {
        self.stop(true)
        return new Response()
      }
      if (path === '/api/pull') return pull()
      if (path === '/api/blobs/sha256:known' && request.method === 'HEAD') return new Response()
      if (path === '/api/blobs/sha256:new' && request.method === 'POST') return new Response(null, { status: 201 })
      if (path === '/api/copy') return new Response()
      return Response.json({ error: "model 'x' not found" }, { status: 404 })
    },
  })
  return { url: server.url.origin, calls, stop: () => server.stop(true) }
}
