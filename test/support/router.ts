import type { Fact } from '../../src/domain/facts'
import type { NodeDescription } from '../../src/domain/node'
import { openRouter, type Router } from '../../src/router'
import { nodeKindOf } from '../../src/sim/fake/kinds'
import type { FakeNode } from '../../src/sim/fake/options'
import { type FakeSpec, startFakes, until } from './fakes'
import { testConfig, testNode } from './host'

type Change = Parameters<typeof testConfig>[0]

export interface Setup extends Omit<NonNullable<Change>, 'nodes'> {
  /** What the configuration says of each fake, by its position. */
  readonly describe?: (index: number) => Partial<NodeDescription>
  /** Wait until every fake was asked once; default true. */
  readonly awaitNodes?: boolean
}

/** A real router on a real port in front of fakes. */
export interface Bench {
  readonly router: Router
  readonly url: string
  readonly fakes: readonly FakeNode[]
  /** Facts since the start, oldest first. */
  readonly facts: readonly Fact[]
  of<T extends Fact['type']>(type: T): Extract<Fact, { type: T }>[]
  chat(options?: ChatOptions): Promise<Response>
  ollama(options?: ChatOptions): Promise<Response>
  json(path: string): Promise<unknown>
  metrics(): Promise<string>
  /** Resolves once no request is in the router and nothing is reserved; rejects after a while with what is left. */
  idle(limitMs?: number): Promise<void>
}

export interface ChatOptions {
  readonly model?: string
  readonly prompt?: string
  readonly stream?: boolean
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  readonly more?: object
}

/** Node names by position: a, b, c, … */
export const nodeName = (index: number): string => String.fromCharCode('a'.charCodeAt(0) + index)

/** Runs with a router in front of these fakes, named a, b, c, …, and ends all of it whatever happens. */
export const withRouter = async <T>(
  specs: readonly FakeSpec[],
  setup: Setup,
  run: (bench: Bench) => Promise<T>,
): Promise<T> => {
  const { describe, awaitNodes = true, ...change } = setup
  const fakes = await startFakes(specs)
  const nodes = fakes.map((fake, index) =>
    testNode(nodeName(index), {
      kind: nodeKindOf(fake.kind),
      url: fake.url,
      ...describe?.(index),
    }),
  )
  const config = testConfig({ ...change, nodes: nodes as never })
  const router = await openRouter(config, {}, { version: '0.0.0', commit: 'test' })
  const facts: Fact[] = []
  const listening = router.listenTo((fact) => facts.push(fact))
  try {
    if (awaitNodes) await until(() => router.fleet.nodes().every(({ health }) => health !== 'unknown'), 5_000)
    return await run(benchOf(router, fakes, facts))
  } finally {
    await router.stopListening(true)
    await router.fleet.stop(0)
    listening()
    router.close()
    await Promise.all(fakes.map((fake) => fake.stop()))
  }
}

const benchOf = (router: Router, fakes: readonly FakeNode[], facts: readonly Fact[]): Bench => {
  const { url } = router
  const post = (path: string, { signal, headers }: ChatOptions, body: object): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    })
  const bodyOf = ({ model = 'm', prompt = 'hi', stream = true, more }: ChatOptions): object => ({
    model,
    stream,
    messages: [{ role: 'user', content: prompt }],
    ...more,
  })
  return {
    router,
    url,
    fakes,
    facts,
    of: <T extends Fact['type']>(type: T) => facts.filter((fact) => fact.type === type) as Extract<Fact, { type: T }>[],
    chat: (options = {}) => post('/v1/chat/completions', options, bodyOf(options)),
    ollama: (options = {}) => post('/api/chat', options, bodyOf(options)),
    json: async (path) => (await fetch(`${url}${path}`)).json(),
    metrics: async () => (await fetch(`${url}/metrics`)).text(),
    idle: async (limitMs = 5_000) => {
      const left = () => {
        const { inFlight, waiting, held } = router.fleet.overview()
        return {
          inFlight,
          waiting,
          held,
          requests: router.fleet.shared.requests.size,
          exchanges: router.exchanges.size,
          bufferedBytes: router.buffered.bytes,
        }
      }
      await until(() => Object.values(left()).every((count) => count === 0), limitMs).catch(() => {
        throw new Error(`not idle: ${JSON.stringify(left())}`)
      })
      router.fleet.shared.desk.ledger.check()
    },
  }
}
