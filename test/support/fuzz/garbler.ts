import type { Random } from '../../../src/ports/random'
import type { FakeNode } from '../../../src/sim/fake/options'
import { mutate, mutateText } from './mutate'

/** Of the answers, 0 to 1, that are garbled. */
const SHARE = 0.5

const isStream = (type: string): boolean => /event-stream|ndjson/.test(type)

/** One record of a stream, with mistakes in its values or in its bytes. */
const garbleLine = (line: string, random: Random): string | Uint8Array => {
  const at = line.indexOf('{')
  if (at < 0 || random.next() < 0.3) return mutateText(line, random)
  return Buffer.concat([Buffer.from(line.slice(0, at)), mutate(JSON.parse(line.slice(at)), random)])
}

const garbleStream = (text: string, random: Random): Uint8Array => {
  const lines = text.split('\n')
  const index = Math.floor(random.next() * lines.length)
  const changed = garbleLine(lines[index] ?? '', random)
  return Buffer.concat(lines.flatMap((line, at) => [Buffer.from(at === index ? changed : line), Buffer.from('\n')]))
}

const garble = (text: string, type: string, random: Random): Uint8Array => {
  if (isStream(type)) return garbleStream(text, random)
  return random.next() < 0.3 ? mutateText(text, random) : mutate(JSON.parse(text), random)
}

/** Stands before a fake and passes everything on; half of what a model says comes out with mistakes in it. */
export const startGarbler = (fake: FakeNode, random: Random): { readonly url: string; stop(): void } => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = request.method === 'POST' ? await request.arrayBuffer() : null
      const answer = await fetch(`${fake.url}${pathname}${search}`, { method: request.method, body })
      const type = answer.headers.get('content-type') ?? ''
      const text = await answer.text()
      const isAnswer = body !== null && !pathname.includes('show') && answer.ok && random.next() < SHARE
      const sent = isAnswer ? garble(text, type, random) : text
      return new Response(sent, { status: answer.status, headers: { 'content-type': type } })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) }
}
