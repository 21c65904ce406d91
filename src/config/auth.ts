import { isLoopbackHost } from '../domain/base-url'
import type { KeyConfig } from '../domain/config'
import { duplicateNames } from './duplicates'
import { hashKey } from './hash-key'
import { failure, type Place, type Problem, warning } from './problem'
import type { KeySettings, Settings } from './schema'
import { readNamedSecret, type SecretSources } from './secrets'

export type AuthMode = 'open' | 'keys'

type Places = ReadonlyMap<string, Place>

/** The mode in force: what is written, else open on a loopback listener and keys on any other. */
export const effectiveMode = ({ server, auth }: Settings): AuthMode =>
  auth.mode ?? (isLoopbackHost(server.listen.host) ? 'open' : 'keys')

/** Callers' keys, hashed. Entries whose secret is missing are reported and left out. */
export const resolveKeys = (
  keys: readonly KeySettings[],
  places: Places,
  sources: SecretSources,
): { readonly keys: readonly KeyConfig[]; readonly problems: readonly Problem[] } => {
  const problems: Problem[] = [...duplicateNames(keys, 'auth.keys', 'keys', places), ...sharedVariables(keys, places)]
  const resolved: KeyConfig[] = []
  keys.forEach((key, index) => {
    const result = hashOf(key, `auth.keys[${index}]`, places, sources)
    if (typeof result === 'string') resolved.push(describe(key, result))
    else problems.push(result)
  })
  return { keys: resolved, problems }
}

const describe = ({ name, scopes, models, priority, policy, limits }: KeySettings, sha256: string): KeyConfig => {
  const { requests_per_minute: requestsPerMinute, concurrent } = limits
  const most = {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(concurrent === undefined ? {} : { concurrent }),
  }
  return {
    name,
    sha256,
    scopes,
    ...(models === undefined ? {} : { models }),
    ...(priority === undefined ? {} : { priority }),
    ...(policy === undefined ? {} : { policy }),
    ...(Object.keys(most).length === 0 ? {} : { limits: most }),
  }
}

const hashOf = (key: KeySettings, path: string, places: Places, sources: SecretSources): string | Problem => {
  const named = (['key_env', 'key_file', 'key_hash'] as const).filter((source) => key[source] !== undefined)
  if (named.length !== 1) {
    const message = `${path} needs exactly one of key_env, key_file, key_hash`
    return failure(named.length === 0 ? 'missing_key' : 'conflict', path, message, places.get(path))
  }
  if (key.key_hash !== undefined) return key.key_hash
  const result = readNamedSecret(key, path, places, sources)
  if (result && 'secret' in result) return hashKey(result.secret)
  return result?.problem ?? failure('secret_missing', path, `${path} has no secret`, places.get(path))
}

/** Whoever holds the one key is counted under the first name, whichever was meant. */
const sharedVariables = (keys: readonly KeySettings[], places: Places): readonly Problem[] => {
  const byVariable = Map.groupBy(keys.keys(), (index) => keys[index]?.key_env)
  return [...byVariable].flatMap(([variable, indexes]) => {
    if (variable === undefined || indexes.length < 2) return []
    const [at, ...also] = indexes
      .map((index) => places.get(`auth.keys[${index}].key_env`))
      .filter((place) => place !== undefined)
    const many = indexes.length === 2 ? 'two' : String(indexes.length)
    return [
      warning(
        'secret_shared',
        `auth.keys[${indexes[0]}].key_env`,
        `${many} keys share one environment variable, ${variable}`,
        at,
        { also },
      ),
    ]
  })
}

const ADD_KEY = 'add a key: `fleet keys add NAME` prints the lines to paste'
const STAY_LOCAL = 'or listen on this machine only: server.listen = "127.0.0.1:11435"'

/** A listener that other machines reach must ask for keys, and whoever asks for keys must have some. */
export const checkListener = (settings: Settings, places: Places): readonly Problem[] => {
  const { server, auth } = settings
  const { host, port } = server.listen
  const isLocal = isLoopbackHost(host)
  const shown = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const modeAt = places.get('auth.mode')
  if (effectiveMode(settings) === 'open') {
    if (!isLocal) {
      const message = `auth.mode is "open", but server.listen ${shown} is reachable from other machines`
      return [
        failure('open_listener', 'auth.mode', message, modeAt, {
          notes: ['set auth.mode = "keys"', ADD_KEY, STAY_LOCAL],
        }),
      ]
    }
    if (auth.mode !== undefined || auth.keys.length === 0) return []
    const notes = ['auth.mode = "keys" asks for them, auth.mode = "open" says that this is meant']
    return [
      warning(
        'keys_not_required',
        'auth.mode',
        'keys are configured, but nobody needs one on a loopback listener',
        places.get('auth.keys[0]'),
        { notes },
      ),
    ]
  }
  if (auth.keys.length > 0) return []
  if (isLocal)
    return [
      failure('no_keys', 'auth.keys', 'auth.mode is "keys", but no key is configured', modeAt, { notes: [ADD_KEY] }),
    ]
  const message = `server.listen ${shown} is reachable from other machines, but no key is configured`
  return [
    failure('open_listener', 'server.listen', message, places.get('server.listen'), { notes: [ADD_KEY, STAY_LOCAL] }),
  ]
}
