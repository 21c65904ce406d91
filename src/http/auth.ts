import { createHash, timingSafeEqual } from 'node:crypto'
import type { Config, KeyConfig, Scope } from '../domain/config'
import { RouterError } from '../domain/errors'

/** Who may use a route. `read` is the native API without its verbs, `own` what a caller may see of its own work. */
export type Access = 'open' | 'inference' | 'metrics' | 'read' | 'own' | 'admin'

/** Any one of these scopes opens the door. */
const scopesFor: Readonly<Record<Access, readonly Scope[]>> = {
  open: [],
  inference: ['inference'],
  metrics: ['metrics'],
  read: ['metrics', 'admin'],
  own: ['inference', 'metrics', 'admin'],
  admin: ['admin'],
}

/** The key that a caller used, by its name; never the key itself. */
export type Caller = Omit<KeyConfig, 'sha256'>

export interface Auth {
  /**
   * The caller behind the headers, or undefined where no key is needed.
   * Throws `unauthorized` without a valid key and `forbidden` when the key lacks the scope.
   */
  admit(access: Access, headers: Headers): Caller | undefined
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The keys a request presents: `Authorization: Bearer`, then `x-api-key`. */
const presented = (headers: Headers): string[] => {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1]
  const apiKey = headers.get('x-api-key')?.trim()
  return [bearer, apiKey].filter((key): key is string => key !== undefined && key !== '')
}

/** Checks callers against the configured key hashes; in open mode everybody is let in. */
export const createAuth = (config: Config['auth']): Auth => {
  if (config.mode === 'open') return { admit: () => undefined }

  const known = config.keys.map(({ sha256: hash, ...caller }) => ({ digest: Buffer.from(hash, 'hex'), caller }))

  // Every key is compared, whatever matched before, so that the time says nothing about which one came close.
  const find = (key: string): Caller | undefined => {
    const digest = sha256(key)
    let found: Caller | undefined
    for (const { digest: expected, caller } of known) {
      if (expected.length === digest.length && timingSafeEqual(expected, digest)) found = caller
    }
    return found
  }

  return {
    admit: (access, headers) => {
      if (access === 'open') return undefined
      const keys = presented(headers)
      const caller = keys.map(find).find((match) => match !== undefined)
      if (!caller) {
        throw new RouterError(
          'unauthorized',
          keys.length === 0 ? 'This router needs a key.' : 'The key is not known here.',
          {
            hint: 'Send it as "Authorization: Bearer KEY"; "fleet keys add NAME" makes one.',
          },
        )
      }
      const scopes = scopesFor[access]
      if (!scopes.some((scope) => caller.scopes.includes(scope))) {
        throw new RouterError(
          'forbidden',
          `The key "${caller.name}" may not do this: it lacks the scope "${scopes.join('" or "')}".`,
          {
            hint: 'Add the scope to the key in fleet.toml.',
          },
        )
      }
      return caller
    },
  }
}
