import type { KeyView } from '../ports/usage'
import type { Args } from './args'
import { withClient } from './client'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'
import { type Column, table } from './table'

const columns: readonly Column[] = [
  { title: 'KEY', most: 16 },
  { title: 'LIMITS', most: 11 },
  { title: 'NOW', most: 4, right: true },
  { title: 'REQUESTS', most: 8, right: true },
  { title: 'IN', most: 9, right: true },
  { title: 'OUT', most: 9, right: true },
  { title: 'ENGINE', most: 8, right: true },
  { title: 'MODELS', most: 0 },
]

const narrowest = 80

const limitsOf = ({ limits }: KeyView): string => {
  const parts = [
    limits?.requestsPerMinute === undefined ? '' : `${limits.requestsPerMinute}/min`,
    limits?.concurrent === undefined ? '' : `${limits.concurrent}x`,
  ].filter((part) => part !== '')
  return parts.length === 0 ? '-' : parts.join(' ')
}

const rowOf = (key: KeyView): string[] => {
  const total = { requests: 0, tokensIn: 0, tokensOut: 0, engineSeconds: 0 }
  for (const { requests, tokensIn, tokensOut, engineSeconds } of key.usage) {
    total.requests += requests
    total.tokensIn += tokensIn
    total.tokensOut += tokensOut
    total.engineSeconds += engineSeconds
  }
  return [
    key.name,
    limitsOf(key),
    String(key.running),
    String(total.requests),
    String(total.tokensIn),
    String(total.tokensOut),
    `${Math.round(total.engineSeconds)} s`,
    key.models?.join(' ') ?? 'all',
  ]
}

/** The keys as a table: what each may, what runs of it now, and its requests, tokens and engine time of all days kept. */
export const renderKeys = (keys: readonly KeyView[], width: number): string =>
  keys.length === 0
    ? 'no keys: fleet keys add NAME makes one\n'
    : `${table(columns, keys.map(rowOf), Math.max(narrowest, width)).join('\n')}\n`

/** `fleet keys list [--json]`: every key of a running router, what it may do and what it used. */
export const listKeys = (args: Args, io: Io): Promise<ExitCode> =>
  withClient(args, io, async (client) => {
    const { keys } = await client.get<{ readonly keys: readonly KeyView[] }>('/api/v1/keys')
    io.out(args.options.json ? `${JSON.stringify({ keys }, null, 2)}\n` : renderKeys(keys, io.columns))
    return exitCode.done
  })
