import type { Args } from './args'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'
import { printable } from './printable'

const defaultUrl = 'http://127.0.0.1:11435'
const timeoutMs = 10_000

/** A command that cannot go on: the message says what and what to try. */
export class CliError extends Error {
  readonly exit: ExitCode

  constructor(exit: ExitCode, message: string) {
    super(message)
    this.name = 'CliError'
    this.exit = exit
  }
}

/** Calls to the native API of a running router; failures are `CliError`s with the exit code that they mean. */
export interface Client {
  readonly url: string
  get<T>(path: string): Promise<T>
  post<T>(path: string): Promise<T>
}

const baseUrl = (args: Args, io: Io): string => {
  const given = args.options.url ?? io.env.FLEET_URL
  const text = typeof given === 'string' && given !== '' ? given : defaultUrl
  const url = URL.parse(/^https?:\/\//i.test(text) ? text : `http://${text}`)
  if (!url) throw new CliError(exitCode.wrongUsage, `'${text}' is not a URL; write it like ${defaultUrl}`)
  return `${url.origin}${url.pathname}`.replace(/\/(v1\/?)?$/, '')
}

/** What the router's own error says, else its status. */
const messageOf = (status: number, text: string): string => {
  try {
    const { fleet, error } = JSON.parse(text) as {
      fleet?: { message?: string; hint?: string }
      error?: { message?: string } | string
    }
    const message = fleet?.message ?? (typeof error === 'string' ? error : error?.message)
    if (message) return fleet?.hint ? `${message} ${fleet.hint}` : message
  } catch {
    // Not JSON: the status has to do.
  }
  return `the router answered with status ${status}`
}

const exitFor = (status: number): ExitCode => {
  if (status === 401 || status === 403) return exitCode.notAllowed
  return status === 404 ? exitCode.notFound : exitCode.failed
}

/** A client of the router that `--url` and `--key`, or `FLEET_URL` and `FLEET_KEY`, name. */
export const createClient = (args: Args, io: Io): Client => {
  const url = baseUrl(args, io)
  const key = args.options.key ?? io.env.FLEET_KEY

  const unreachable = (error: unknown): CliError =>
    error instanceof Error && error.name === 'TimeoutError'
      ? new CliError(exitCode.timedOut, `${url} did not answer within ${timeoutMs / 1_000} s`)
      : new CliError(exitCode.notReachable, `no router at ${url}: start one with 'fleet serve', or name it with --url`)

  const call = async <T>(method: string, path: string): Promise<T> => {
    const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
    let response: Response
    let text: string
    try {
      response = await io.fetch(`${url}${path}`, { method, headers, signal: AbortSignal.timeout(timeoutMs) })
      text = await response.text()
    } catch (error) {
      throw unreachable(error)
    }
    if (!response.headers.has('x-fleet-instance')) {
      throw new CliError(exitCode.failed, `what answers at ${url} is not a fleet router; name the router with --url`)
    }
    if (!response.ok) throw new CliError(exitFor(response.status), messageOf(response.status, text))
    return JSON.parse(text) as T
  }

  return { url, get: (path) => call('GET', path), post: (path) => call('POST', path) }
}

/** Runs a command that talks to a router, and turns its failure into a message and an exit code. */
export const withClient = async (args: Args, io: Io, run: (client: Client) => Promise<ExitCode>): Promise<ExitCode> => {
  try {
    return await run(createClient(args, io))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    io.err(`fleet: ${printable(error.message)}\n`)
    return error.exit
  }
}
