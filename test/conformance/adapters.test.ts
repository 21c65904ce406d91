import { afterEach, describe, expect, test } from 'bun:test'
import { identify } from '../../src/nodes/fingerprint'
import { createNodeHttp } from '../../src/nodes/fetch-http'
import { adapterFor, adapters } from '../../src/nodes/index'
import { NodeFault } from '../../src/ports/node-gateway'
import { nodeAt, type Recording, type Replay, recording, recordings, replay } from '../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const never = new AbortController().signal

const servers: Replay[] = []
const play = (record: Pick<Recording, 'routes' | 'headers'>): Replay => {
  const server = replay(record)
  servers.push(server)
  return server
}
afterEach(() => {
  for (const server of servers.splice(0)) server.stop()
})

/** Requests that load, wake, stop and download nothing on any of the engines. `/slots` needs its own rule below. */
const HARMLESS = [
  /^GET \/$/,
  /^GET \/(v1\/)?models$/,
  /^GET \/api\/(version|tags|ps|extra\/version|v0\/models|v1\/models)$/,
  /^POST \/api\/show#/,
  /^GET \/props$/,
  /^GET \/(props|slots)\?model=[^&]+&autoload=false$/,
  /^GET \/slots$/,
  /^GET \/(running|version|health|metrics)$/,
  /^GET \/sdcpp\/v1\/capabilities$/,
  /^GET \/sdapi\/v1\/(sd-models|options|progress\?skip_current_image=true)$/,
  /^GET \/api\/(v1\/model|extra\/(perf|true_max_context_length))$/,
  /^GET \/(get_)?(model|server)_info$/,
]
const harmful = (log: readonly string[]): string[] => log.filter((line) => !HARMLESS.some((one) => one.test(line)))

const faultOf = async (work: Promise<unknown>): Promise<NodeFault> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(NodeFault)
  return error as NodeFault
}

const reporting = recordings.filter((one) => one.report)

describe('report', () => {
  test('has a recording for every kind', () => {
    expect(new Set(reporting.map((one) => one.kind))).toEqual(new Set(Object.keys(adapters) as never[]))
  })

  for (const record of reporting) {
    const kind = record.kind!
    test(`${record.name}: ${record.about}`, async () => {
      const server = play(record)

      const report = await adapterFor(kind).report(nodeAt(server.url, kind), http, never)

      expect(report).toEqual(record.report!)
      expect(harmful(server.log)).toEqual([])
    })

    test(`${record.name}: the base URL may be written with /v1 or a slash`, async () => {
      const server = play(record)

      for (const url of [`${server.url}/`, `${server.url}/v1`, `${server.url}/v1/`]) {
        const report = await adapterFor(kind).report(nodeAt(url, kind), http, never)
        expect(report.models).toEqual(record.report!.models)
      }
    })
  }

  test('never asks a sleeping llama-server, or a router without naming the model, for its slots', async () => {
    for (const name of ['llamacpp-sleeping', 'llamacpp-router', 'llamacpp-path', 'llamacpp-2024', 'llamacpp-loading']) {
      const server = play(recording(name))
      await adapterFor('llamacpp').report(nodeAt(server.url, 'llamacpp'), http, never)
      expect(server.log).not.toContain('GET /slots')
    }
  })

  test('inspects only the loaded children of a llama-server router', async () => {
    const server = play(recording('llamacpp-router'))
    await adapterFor('llamacpp').report(nodeAt(server.url, 'llamacpp'), http, never)
    expect(server.log.filter((line) => line.includes('?model=')).sort()).toEqual([
      'GET /props?model=org%2Fa%3AQ4&autoload=false',
      'GET /slots?model=org%2Fa%3AQ4&autoload=false',
    ])
  })
})

describe('identify', () => {
  for (const record of recordings) {
    test(`${record.name}: ${record.about}`, async () => {
      const server = play(record)

      const found = await identify(server.url, http, never)

      const { url, ...rest } = { url: server.url, ...found }
      expect(found ? rest : (null as unknown)).toEqual(record.identity)
      expect(url).toBe(server.url)
      expect(harmful(server.log)).toEqual([])
      expect(server.log.filter((line) => line.startsWith('GET /slots'))).toEqual([])
    })
  }

  test('gives the same answer for a base URL with /v1, /api or a slash', async () => {
    for (const name of ['ollama-0.33', 'llamacpp-single', 'vllm-0.32']) {
      const server = play(recording(name))
      const plain = await identify(server.url, http, never)
      for (const suffix of ['/', '/v1', '/v1/', '/api']) {
        expect(await identify(`${server.url}${suffix}`, http, never)).toEqual(plain!)
      }
    }
  })

  test('asks an unknown web server three things and no more', async () => {
    const server = play(recording('none-webserver'))
    await identify(server.url, http, never)
    expect(server.log).toEqual(['GET /v1/models', 'GET /api/version', 'GET /models'])
  })

  test('sends no request twice', async () => {
    for (const record of recordings) {
      const server = play(record)
      await identify(server.url, http, never)
      expect(server.log).toEqual([...new Set(server.log)])
    }
  })

  test('does not take "Ollama is running" alone for an Ollama', async () => {
    const { routes } = recording('ollama-0.33')
    for (const missing of ['GET /api/version', 'GET /api/ps']) {
      const server = play({ routes: { ...routes, [missing]: { status: 404, body: {} } } })
      expect(await identify(server.url, http, never)).toMatchObject({ kind: 'openai' })
    }
  })

  test('adopts no router that speaks like Ollama', async () => {
    const { routes } = recording('ollama-0.33')
    const server = play({ routes, headers: { 'x-fleet-instance': 'x' } })
    for (const adapter of Object.values(adapters)) {
      expect(await adapter.fingerprint(server.url, http, never)).toBeUndefined()
    }
  })

  test('finds nothing where nobody listens', async () => {
    const server = play({ routes: {} })
    server.stop()
    expect(await identify(server.url, http, never)).toBeUndefined()
  })
})

describe('a server that hangs', () => {
  const hanging = (): { url: string; stop(): void } => {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: () => new Promise(() => {}) })
    return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) }
  }

  for (const adapter of Object.values(adapters)) {
    test(`${adapter.kind}: report ends with the signal`, async () => {
      const server = hanging()
      const fault = await faultOf(adapter.report(nodeAt(server.url, adapter.kind), http, AbortSignal.timeout(50)))
      server.stop()
      expect(fault.failure.class).toBe('first_byte_timeout')
      expect(fault.failure.elapsedMs).toBeLessThan(1_000)
    })
  }

  test('identify ends with the signal and finds nothing', async () => {
    const server = hanging()
    expect(await identify(server.url, http, AbortSignal.timeout(50))).toBeUndefined()
    server.stop()
  })

  test('identify takes no server for a generic one because the telling path hangs', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ url }) =>
        url.endsWith('/v1/models') ? Response.json({ data: [{ id: 'm' }] }) : new Promise<Response>(() => {}),
    })
    expect(await identify(`http://127.0.0.1:${server.port}`, http, AbortSignal.timeout(80))).toBeUndefined()
    await server.stop(true)
  })
})

describe('answers that are none', () => {
  const bad: Readonly<Record<string, { answer: () => Response; class: string }>> = {
    'a web page': {
      answer: () => new Response('<html>Login</html>', { headers: { 'content-type': 'text/html' } }),
      class: 'bad_content',
    },
    'half a JSON': { answer: () => new Response('{"models":[{"name"'), class: 'bad_content' },
    'JSON of another shape': {
      answer: () => Response.json({ models: 7, data: 'x', build_info: 5 }),
      class: 'bad_content',
    },
    'an array': { answer: () => Response.json([1, 2]), class: 'bad_content' },
    nothing: { answer: () => new Response(''), class: 'bad_content' },
    'too much': { answer: () => new Response('['.repeat(5 * 1024 * 1024)), class: 'bad_content' },
    'a login': {
      answer: () => new Response('', { status: 302, headers: { location: 'https://sso.example/login?t=1' } }),
      class: 'status',
    },
    'an error': {
      answer: () => Response.json({ error: { message: 'CUDA is lost' } }, { status: 500 }),
      class: 'status',
    },
  }
  for (const adapter of Object.values(adapters)) {
    for (const [what, { answer, class: kind }] of Object.entries(bad)) {
      test(`${adapter.kind}: ${what} is a fault that names the address (BL-L02)`, async () => {
        const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
        const address = `127.0.0.1:${server.port}`
        const fault = await faultOf(adapter.report(nodeAt(`http://${address}`, adapter.kind), http, never))
        await server.stop(true)
        expect(fault.failure.class).toBe(kind as never)
        expect(fault.message).toContain(`${address}/`)
      })
    }
  }
})
