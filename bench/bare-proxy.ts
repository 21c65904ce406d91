/** The least that a proxy in Bun can be: the yardstick for what routing adds. Buffered body, native pass-through of the answer. */
const { PORT, UPSTREAM } = process.env

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  development: false,
  idleTimeout: 0,
  fetch: async (request) => {
    const url = new URL(request.url)
    const body = request.method === 'POST' ? await request.arrayBuffer() : null
    const answer = await fetch(`${UPSTREAM}${url.pathname}`, {
      method: request.method,
      headers: { 'content-type': request.headers.get('content-type') ?? 'application/json' },
      body,
      signal: request.signal,
      decompress: false,
      // Bun's own deadline is for browsers; its types do not know the value.
      ...({ timeout: false } as object),
    })
    const { status, headers } = answer
    return new Response(answer.body, {
      status,
      headers: { 'content-type': headers.get('content-type') ?? 'application/json' },
    })
  },
})
