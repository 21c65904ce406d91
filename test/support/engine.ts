/** The real llama-server of the end-to-end tests: where it is, and how to run one. */
import { join } from 'node:path'
import { describeUnless, madeBy } from './needs'

export interface EnginePaths {
  readonly server: string
  readonly model: string
}

export interface LlamaOptions {
  /** 0 or absent: a free one. */
  readonly port?: number
  /** Slots; 2 unless told. */
  readonly parallel?: number
  /** Context of all slots together, in tokens. */
  readonly contextTokens?: number
  readonly alias?: string
}

export interface Llama {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Requests that it computes now. */
  processing(): Promise<number>
  kill(signal: NodeJS.Signals): void
  /** Ends it and waits for its end; safe to call twice and on a stopped (SIGSTOP) one. */
  stop(): Promise<void>
}

const script = join(import.meta.dir, '..', '..', 'scripts', 'engine.sh')
const startDeadlineMs = 60_000

let found: EnginePaths | { readonly missing: string } | undefined

/** The engine that scripts/engine.sh made for this user, or why there is none. Makes nothing. */
export const engine = (): EnginePaths | { readonly missing: string } => {
  found ??= lookUp()
  return found
}

const lookUp = (): EnginePaths | { readonly missing: string } => {
  const made = madeBy(script)
  if ('missing' in made) return made
  const [server = '', model = ''] = made.lines
  return { server, model }
}

/** A `describe` that needs the real engine. */
export const describeWithEngine = (name: string, body: () => void): void => {
  const paths = engine()
  describeUnless('missing' in paths ? `there is no real engine: ${paths.missing}` : undefined, name, body)
}

/** Starts one server on 127.0.0.1 and waits until it has its model. */
export const startLlama = async (options: LlamaOptions = {}): Promise<Llama> => {
  const paths = engine()
  if ('missing' in paths) throw new Error(`no real engine: ${paths.missing}`)
  const port = options.port || freePort()
  const child = Bun.spawn(
    [
      paths.server,
      ...['--model', paths.model, '--alias', options.alias ?? 'smollm2'],
      ...['--host', '127.0.0.1', '--port', String(port)],
      ...['-c', String(options.contextTokens ?? 2048), '-np', String(options.parallel ?? 2)],
      ...['-t', '1', '--no-webui'],
      // A test that depends on what was drawn fails once in a while: always the likeliest token.
      ...['--temp', '0', '--seed', '1'],
    ],
    { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
  )
  const url = `http://127.0.0.1:${port}`
  const stop = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  try {
    await healthy(url, () => child.exitCode === null && child.signalCode === null)
  } catch (error) {
    await stop()
    throw error
  }
  return { url, port, pid: child.pid, processing: () => processing(url), kill: (signal) => child.kill(signal), stop }
}

/** A port that was free a moment ago. */
export const freePort = (): number => {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

const healthy = async (url: string, alive: () => boolean): Promise<void> => {
  const deadline = performance.now() + startDeadlineMs
  while (performance.now() < deadline) {
    if (!alive()) throw new Error(`llama-server at ${url} ended before it was ready`)
    const status = await fetch(`${url}/health`).then(
      (answer) => answer.status,
      () => 0,
    )
    if (status === 200) return
    await Bun.sleep(50)
  }
  throw new Error(`llama-server at ${url} was not ready within ${startDeadlineMs / 1000} s`)
}

const processing = async (url: string): Promise<number> => {
  const slots = (await (await fetch(`${url}/slots`)).json()) as { is_processing: boolean }[]
  return slots.filter((slot) => slot.is_processing).length
}
