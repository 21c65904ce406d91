import { randomBytes } from 'node:crypto'
import { isEntryName } from '../config/formats'
import { hashKey } from '../config/hash-key'
import type { Scope } from '../domain/config'
import { parseArgs } from './args'
import { exitCode } from './exit-codes'

export interface KeysIo {
  /** What to paste: standard output. */
  readonly out: (text: string) => void
  /** The key itself and how to use it: standard error, so that `>> fleet.toml` keeps it on the screen only. */
  readonly err: (text: string) => void
}

const SCOPES: readonly Scope[] = ['inference', 'metrics', 'admin', 'node']
const KEY_BYTES = 32

interface NewKey {
  readonly name: string
  readonly scopes: readonly string[]
  readonly json: boolean
}

/** `fleet keys add NAME`: prints a new key once, and the lines that let it in. Keeps nothing. Returns the exit code. */
export const keys = (args: readonly string[], io: KeysIo): number => {
  const wanted = parseKey(args)
  if (typeof wanted === 'string') {
    io.err(`${wanted}\n`)
    return exitCode.wrongUsage
  }
  const { name, scopes } = wanted
  const key = `fleet_${randomBytes(KEY_BYTES).toString('base64url')}`
  const keyHash = `sha256:${hashKey(key)}`
  if (wanted.json) {
    io.out(`${JSON.stringify({ name, key, key_hash: keyHash, scopes })}\n`)
    return exitCode.done
  }
  io.err(`The new key, shown only this once:\n\n  ${key}\n\nAdd these lines to fleet.toml:\n\n`)
  io.out(
    [
      '[[auth.keys]]',
      `name     = ${JSON.stringify(name)}`,
      `key_hash = "${keyHash}"`,
      `scopes   = [${scopes.map((scope) => JSON.stringify(scope)).join(', ')}]`,
      '',
    ].join('\n'),
  )
  return exitCode.done
}

/** The key to make, or what is wrong with the arguments. */
const parseKey = (args: readonly string[]): NewKey | string => {
  const parsed = parseArgs(['keys', ...args])
  if (parsed.kind !== 'run') return parsed.kind === 'usage' ? parsed.message : 'fleet keys add NAME'
  const { positionals, options } = parsed.args
  const [command, name = ''] = positionals
  if (command !== 'add') return `unknown command 'keys ${command}', there are 'keys add NAME' and 'keys list'`
  if (!isEntryName(name)) return 'a name has 1 to 64 characters without white space, / and #'
  const scopes = String(options.scope ?? 'inference').split(',')
  const unknown = scopes.find((scope) => !SCOPES.some((known) => known === scope))
  if (unknown !== undefined) return `${JSON.stringify(unknown)} is not a scope; allowed: ${SCOPES.join(', ')}`
  return { name, scopes, json: options.json === true }
}
