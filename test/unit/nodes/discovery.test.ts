import { afterEach, describe, expect, test } from 'bun:test'
import { hostname } from 'node:os'
import type { NodeDescription } from '../../../src/domain/node'
import { createDiscovery, ENGINE_PORTS, localCandidates } from '../../../src/nodes/discovery'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import type { Clock } from '../../../src/ports/clock'
import { nodeAt, type Replay, recording, replay } from '../../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 5_000, instance: 'this-instance', now: Date.now })

let stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops) stop()
  stops = []
})
const play = (name: string, port = 0): Replay => {
  const server = replay(recording(name), port)
  stops.push(server.stop)
  return server
}

/** A clock whose timers fire only by hand. */
const handClock = () => {
  const timers = new Map<number, { run: () => void; ms: number }>()
  let last = 0
  const clock: Clock = {
    now: () => 0,
    setTimeout(run, ms) {
      last += 1
      timers.set(last, { run, ms })
      return last
    },
    clearTimeout: (handle) => void timers.delete(handle as number),
  }
  const fire = (ms: number): void => {
    for (const [id, timer] of [...timers]) {
      if (timer.ms !== ms) continue
      timers.delete(id)
      timer.run()
    }
  }
  return { clock, fire, pending: () => [...timers.values()].map((timer) => timer.ms) }
}

const discover = (ports: number[], options: { known?: NodeDescription[]; ownPort?: number } = {}) => {
  const nodes: NodeDescription[] = [...(options.known ?? [])]
  const found: { node: NodeDescription; version?: string | undefined }[] = []
  const hand = handClock()
  const discovery = createDiscovery({
    http,
    ports,
    everyMs: 30_000,
    clock: hand.clock,
    known: () => nodes,
    ownPort: options.ownPort ?? 1,
    found(node, version) {
      nodes.push(node)
      found.push({ node, version })
    },
  })
  stops.push(discovery.stop)
  return { discovery, nodes, found, ...hand }
}

const settled = async (holds: () => boolean): Promise<void> => {
  for (let i = 0; i < 400 && !holds(); i += 1) await Bun.sleep(5)
  expect(holds()).toBe(true)
}

test('the candidates are the usual ports of the loopback', () => {
  expect(localCandidates()).toEqual(ENGINE_PORTS.map((port) => `http://127.0.0.1:${port}`))
  expect(ENGINE_PORTS).toContain(11434)
})

describe('a scan', () => {
  test('finds every engine, with kind, version and a stable name', async () => {
    const [ollama, llama, studio] = ['ollama-0.33', 'llamacpp-single', 'lmstudio-0.4'].map((name) => play(name))
    const { discovery, found } = discover([ollama!.port, llama!.port, studio!.port, 1])

    const nodes = await discovery.scanOnce()

    expect(nodes).toHaveLength(3)
    expect(found.map(({ node, version }) => [node.name, node.kind, version]).sort()).toEqual([
      [`llamacpp-${llama!.port}`, 'llamacpp', 'b7000-abcdef0'],
      [`lmstudio-${studio!.port}`, 'lmstudio', undefined],
      [`ollama-${ollama!.port}`, 'ollama', '0.33.0'],
    ])
    const { node } = found.find((one) => one.node.kind === 'ollama')!
    expect(node).toEqual({
      name: node.name,
      kind: 'ollama',
      url: ollama!.url,
      origin: 'discovered',
      tags: [],
      distance: 0,
    })
  })

  test('gives a name that is taken a number', async () => {
    const server = play('ollama-0.33')
    const name = `ollama-${server.port}`
    const { discovery } = discover([server.port], { known: [nodeAt('http://10.0.0.9:1', 'ollama', { name })] })
    expect((await discovery.scanOnce()).map((node) => node.name)).toEqual([`${name}-2`])
  })

  test('leaves what is known alone, under whatever name of this machine', async () => {
    const server = play('ollama-0.33')
    for (const host of ['localhost', '127.0.0.1', '[::1]', hostname()]) {
      const known = [nodeAt(`http://${host}:${server.port}`, 'ollama')]
      expect(await discover([server.port], { known }).discovery.scanOnce()).toEqual([])
    }
    expect(server.log).toEqual([])
  })

  test('does not look at our own port', async () => {
    const server = play('ollama-0.33')
    await discover([server.port], { ownPort: server.port }).discovery.scanOnce()
    expect(server.log).toEqual([])
  })

  test('adopts no other router, and no server that is no engine', async () => {
    const ports = ['fleet', 'none-webserver', 'none-fastapi'].map((name) => play(name).port)
    expect(await discover(ports).discovery.scanOnce()).toEqual([])
  })

  test('finds engines that list no models as OpenAI does, or do not say what they are', async () => {
    const ports = ['whispercpp', 'a1111', 'mlx-two'].map((name) => play(name).port)
    const found = await discover(ports).discovery.scanOnce()
    expect(found.map(({ kind }) => kind).sort()).toEqual(['a1111', 'mlx', 'whispercpp'])
  })

  test('a port that hangs delays no other and is given up after its own deadline', async () => {
    const silent = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: () => new Promise(() => {}) })
    stops.push(() => void silent.stop(true))
    const engine = play('llamacpp-single')
    const { discovery, found, fire } = discover([silent.port ?? 0, engine.port])

    const scan = discovery.scanOnce()
    await settled(() => found.length === 1)
    fire(1_500)

    expect((await scan).map((node) => node.name)).toEqual([`llamacpp-${engine.port}`])
  })

  test('an engine that was found stays found: gone, back or removed by hand', async () => {
    const server = play('ollama-0.33')
    const { discovery, nodes, found } = discover([server.port])
    await discovery.scanOnce()

    server.stop()
    await discovery.scanOnce()
    nodes.length = 0
    play('ollama-0.33', server.port)
    await discovery.scanOnce()

    expect(found).toHaveLength(1)
  })

  test('two at the same time are one', async () => {
    const server = play('ollama-0.33')
    const { discovery, found } = discover([server.port])
    await Promise.all([discovery.scanOnce(), discovery.scanOnce()])
    expect(found).toHaveLength(1)
  })
})

describe('started', () => {
  test('it scans at once, then at every interval, and finds an engine that came later', async () => {
    const early = play('llamacpp-single')
    const late = play('ollama-0.33')
    late.stop()
    const { discovery, found, fire, pending } = discover([early.port, late.port])

    discovery.start()
    await settled(() => pending().includes(30_000))
    expect(found.map(({ node }) => node.kind)).toEqual(['llamacpp'])
    play('ollama-0.33', late.port)
    fire(30_000)

    await settled(() => found.length === 2)
    expect(found[1]?.node.kind).toBe('ollama')
  })

  test('stop ends the running scan and the interval; nothing is found after it', async () => {
    const server = play('ollama-0.33')
    const { discovery, found, pending } = discover([server.port])

    discovery.start()
    discovery.stop()
    await settled(() => pending().length === 0)

    expect(found).toEqual([])
  })
})
