import { matchesGlob } from './glob'
import { modelKey } from './job'

/** `*` stands for any characters, slashes and colons included; case and `:latest` do not count. */
const matches = (glob: string, key: string): boolean => matchesGlob(modelKey(glob), key)

/**
 * Whether globs let a model be used: one of them has to match, and none that begins with `!`. Only exclusions means
 * everything else; no globs at all means everything.
 */
export const isModelAllowed = (globs: readonly string[] | undefined, model: string): boolean => {
  if (globs === undefined || globs.length === 0) return true
  const key = modelKey(model)
  const excluded = globs.filter((glob) => glob.startsWith('!'))
  if (excluded.some((glob) => matches(glob.slice(1), key))) return false
  return excluded.length === globs.length || globs.some((glob) => !glob.startsWith('!') && matches(glob, key))
}

/**
 * Whether a request may run: every name that it asks for has to be allowed, and no model that these stand for may be
 * excluded, so that an alias opens no back door.
 */
export const mayRun = (
  globs: readonly string[] | undefined,
  asked: readonly string[],
  models: readonly string[],
): boolean => {
  if (!asked.every((name) => isModelAllowed(globs, name))) return false
  const excluded = globs?.filter((glob) => glob.startsWith('!'))
  return models.every((model) => isModelAllowed(excluded, model))
}
