import { isLoopbackHost } from '../domain/base-url'
import type { NodeDescription } from '../domain/node'

export interface FirstRun {
  readonly version: string
  /** Where it listens, as the server says it. */
  readonly url: string
  /** This machine's name, for clients elsewhere. */
  readonly hostname: string
  /** How this program is called here. */
  readonly program: string
  /** The configuration that was read. */
  readonly file: string | undefined
  readonly found: readonly NodeDescription[]
  readonly configured: readonly NodeDescription[]
  readonly demo: readonly NodeDescription[]
  readonly isForced: boolean
  readonly needsKey: boolean
}

const DEFAULT_URL = 'http://127.0.0.1:11435'
/** A model that the demo has. */
const DEMO_MODEL = 'qwen3:8b'

const line = (mark: string, { name, kind, url }: NodeDescription): string =>
  `    ${mark} ${name.padEnd(20)} ${kind.padEnd(10)} ${url}`

/** All addresses of the machine: no client can be pointed at that. */
const isEveryAddress = (hostname: string): boolean => hostname === '0.0.0.0' || hostname === '[::]'

/** The address for a client on this machine, and the one for others where they can reach it. */
const addressesOf = ({ url, hostname }: FirstRun): { readonly here: string; readonly elsewhere?: string } => {
  const { hostname: host, port } = new URL(url)
  if (isEveryAddress(host)) return { here: `http://127.0.0.1:${port}`, elsewhere: `http://${hostname}:${port}` }
  return { here: url }
}

const nodeLines = ({ file, found, configured, demo, isForced }: FirstRun): string[] => {
  const lines: string[] = []
  if (configured.length > 0)
    lines.push(`  Nodes in ${file ?? 'the configuration'}`, ...configured.map((node) => line('+', node)), '')
  if (found.length > 0) lines.push('  Found on this machine', ...found.map((node) => line('+', node)), '')
  if (demo.length > 0) {
    lines.push(
      isForced
        ? '  Demo: simulated nodes; their answers are made up'
        : '  No engine found on this machine: simulated nodes stand in until one is, and their answers are made up',
      ...demo.map((node) => line('~', node)),
      '',
    )
  }
  if (lines.length === 0)
    lines.push(
      '  No engine found on this machine yet; fleet goes on looking. Name engines elsewhere as [[nodes]] in fleet.toml.',
      '',
    )
  return lines
}

const tryLines = (run: FirstRun, here: string): string[] => {
  const { demo, needsKey, program } = run
  const model = demo.length > 0 ? DEMO_MODEL : 'MODEL'
  const key = needsKey ? " -H 'authorization: Bearer KEY'" : ''
  const url = here === DEFAULT_URL ? '' : ` --url ${here}`
  return [
    `  Models      curl ${here}/v1/models${key}`,
    `  Try         curl ${here}/v1/chat/completions${key} -H 'content-type: application/json' \\`,
    `                -d '{"model":"${model}","messages":[{"role":"user","content":"hi"}]}'`,
    `  Then        ${program} explain last${url}${needsKey ? ' --key KEY' : ''}`,
  ]
}

/** What a person reads at the start: what was found, where to point a client, what to type. */
export const firstRunText = (run: FirstRun): string => {
  const { version, file, needsKey } = run
  const { here, elsewhere } = addressesOf(run)
  const lines = [
    `  fleet ${version}   ${file ?? 'no fleet.toml here, using defaults'}`,
    '',
    ...nodeLines(run),
    `  Ready       ${here}/v1   (OpenAI)      ${here}   (Ollama, Anthropic)`,
    ...(elsewhere === undefined
      ? []
      : [`  Elsewhere   ${elsewhere}/v1   (OpenAI)      ${elsewhere}   (Ollama, Anthropic)`]),
    ...tryLines(run, here),
  ]
  if (needsKey)
    lines.push('  KEY         one that [[auth.keys]] in fleet.toml lets in; explain needs the scope metrics or admin')
  if (isLoopbackHost(new URL(here).hostname) && elsewhere === undefined)
    lines.push(
      '  Only this machine can reach it. To serve your network set [server] listen and [auth] keys in fleet.toml.',
    )
  return `${lines.join('\n')}\n\n`
}
