import type { NodeDescription } from '../domain/node'

export interface FirstRun {
  readonly version: string
  readonly url: string
  /** The configuration that was read. */
  readonly file: string | undefined
  readonly found: readonly NodeDescription[]
  readonly configured: readonly NodeDescription[]
  readonly demo: readonly NodeDescription[]
  readonly isForced: boolean
  readonly isLoopback: boolean
}

const line = (mark: string, { name, kind, url }: NodeDescription): string =>
  `    ${mark} ${name.padEnd(20)} ${kind.padEnd(10)} ${url}`

/** What a person reads at the start: what was found, where to point a client, what to type. */
export const firstRunText = ({
  version,
  url,
  file,
  found,
  configured,
  demo,
  isForced,
  isLoopback,
}: FirstRun): string => {
  const lines = [`  fleet ${version}   ${file ?? 'no fleet.toml here, using defaults'}`, '']
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
  if (found.length + configured.length + demo.length === 0)
    lines.push(
      '  No engine found on this machine yet; looking again every while. Add [[nodes]] to fleet.toml for others.',
      '',
    )
  const model = demo.length > 0 ? '"qwen3:8b"' : '"MODEL"'
  lines.push(
    `  Ready       ${url}/v1   (OpenAI)      ${url}   (Ollama)`,
    `  Models      curl ${url}/v1/models`,
    `  Try         curl ${url}/v1/chat/completions -H 'content-type: application/json' \\`,
    `                -d '{"model":${model},"messages":[{"role":"user","content":"hi"}]}'`,
    '  Then        fleet explain last',
  )
  if (isLoopback)
    lines.push(
      '  Only this machine can reach it. To serve your network set [server] listen and [auth] keys in fleet.toml.',
    )
  return `${lines.join('\n')}\n\n`
}
