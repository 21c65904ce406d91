import { dirname, isAbsolute, join } from 'node:path'
import { failure, type Place, type Problem } from './problem'

export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readSecret: (path: string) => string
  /** The configuration file: relative paths of secrets start at its folder. */
  readonly configFile?: string
}

interface Named {
  readonly key_env?: string
  readonly key_file?: string
}

export type Secret = { readonly secret: string } | { readonly problem: Problem } | undefined

const PLACEHOLDER =
  /^(?:changeme|change[-_ ]me|replace[-_ ]?me|todo|fixme|example|placeholder|secret|password|none|null|x{3,}|\*{3,}|<.*>|\$\{.*\}|(?:sk|key)-(?:\.{3}|…|x{3,}|\*{3,}|your.*)?|your[-_ ].*|my[-_ ]?(?:api[-_ ]?)?(?:key|secret))$/i

/** Header values: printable ASCII without spaces. */
const SENDABLE = /^[\x21-\x7e]+$/

/** The secret that an entry names, or why there is none. Messages never hold the secret. `path` is the entry's. */
export const readNamedSecret = (
  named: Named,
  path: string,
  places: ReadonlyMap<string, Place>,
  sources: SecretSources,
): Secret => {
  const { key_env: variable, key_file: file } = named
  if (variable !== undefined) {
    const at = places.get(`${path}.key_env`)
    const value = sources.env[variable]?.trim()
    return value
      ? check(value, variable, `${path}.key_env`, at)
      : missing(`environment variable ${variable} is not set`, `${path}.key_env`, at)
  }
  if (file === undefined) return undefined
  const at = places.get(`${path}.key_file`)
  const value = readFile(file, sources)
  if (value === undefined) return missing(`cannot read the key file ${file}`, `${path}.key_file`, at)
  return value
    ? check(value, file, `${path}.key_file`, at)
    : missing(`the key file ${file} is empty`, `${path}.key_file`, at)
}

const missing = (message: string, path: string, at?: Place): Secret => ({
  problem: failure('secret_missing', path, message, at),
})

const check = (secret: string, source: string, path: string, at?: Place): Secret => {
  if (PLACEHOLDER.test(secret)) {
    return { problem: failure('secret_placeholder', path, `${source} holds a placeholder, not a key`, at) }
  }
  if (SENDABLE.test(secret)) return { secret }
  return { problem: failure('secret_placeholder', path, `${source} holds characters that a key cannot have`, at) }
}

/** Undefined when it cannot be read; the reason stays out, since it adds nothing that `ls` would not say. */
const readFile = (path: string, { configFile, readSecret }: SecretSources): string | undefined => {
  try {
    const isRelative = !isAbsolute(path) && configFile !== undefined
    return readSecret(isRelative ? join(dirname(configFile), path) : path).trim()
  } catch {
    return undefined
  }
}
