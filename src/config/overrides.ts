import { nearest } from '../domain/nearest'
import { failure, type Problem, warning } from './problem'
import { freeShapes, type Shape, type TableShape } from './shape'
import { fromJson, type Located } from './tree'

type Texts = Readonly<Record<string, string | undefined>>

/** Variables of ours that are no keys of the file. */
const OTHER_VARIABLES = ['FLEET_CONFIG', 'FLEET_URL', 'FLEET_KEY']

/** `server.listen` is set by `FLEET_SERVER_LISTEN`. */
export const variableName = (path: string): string => `FLEET_${path.toUpperCase().replaceAll('.', '_')}`

/** Every key that can be set from outside the file, with the shape that its text must have. Lists, and tables of the user's own keys, are set whole. */
export const settableKeys = (shape: TableShape, prefix = ''): ReadonlyMap<string, Shape> => {
  const keys = new Map<string, Shape>()
  for (const [name, inner] of Object.entries(shape.properties)) {
    if (inner.type !== 'object') {
      if (!inner.fileOnly) keys.set(prefix + name, inner)
    } else if (freeShapes(inner).length > 0) keys.set(prefix + name, inner)
    else for (const [path, leaf] of settableKeys(inner, `${prefix}${name}.`)) keys.set(path, leaf)
  }
  return keys
}

/** What variables and flags (by key path, such as `server.listen`) say, by key path; flags win. */
export const readOverrides = (
  root: TableShape,
  env: Texts,
  flags: Texts,
): { readonly overrides: ReadonlyMap<string, Located>; readonly problems: readonly Problem[] } => {
  const overrides = new Map<string, Located>()
  const problems: Problem[] = []
  for (const [path, shape] of settableKeys(root)) {
    const variable = variableName(path)
    const fromFlag = flags[path]
    const text = fromFlag ?? env[variable]
    if (text === undefined) continue
    const file = fromFlag === undefined ? `env ${variable}` : 'flag'
    const isWhole = shape.type === 'array' || shape.type === 'object'
    const located = isWhole ? parseJson(text, file) : rawText(text, file)
    if (located) overrides.set(path, located)
    else problems.push(failure('wrong_type', path, `${path} must be ${jsonRule(shape)}`, { file }))
  }
  return { overrides, problems }
}

const jsonRule = ({ type }: Shape): string =>
  type === 'object' ? `a JSON object here, such as '{"name": "…"}'` : `a JSON list here, such as '[{"name": "…"}]'`

const rawText = (value: string, file: string): Located => ({ type: 'scalar', at: { file }, kind: 'raw', value })

const parseJson = (text: string, file: string): Located | undefined => {
  try {
    return fromJson(JSON.parse(text), { file })
  } catch {
    return undefined
  }
}

/** Warns of variables that look like ours and set nothing; `named` are those that a `key_env` names. */
export const unknownVariables = (root: TableShape, env: Texts, named: ReadonlySet<string>): readonly Problem[] => {
  const known = new Set([...[...settableKeys(root).keys()].map(variableName), ...OTHER_VARIABLES, ...named])
  return Object.keys(env)
    .filter((name) => name.startsWith('FLEET_') && env[name] !== undefined && !known.has(name))
    .map((name) => {
      const suggestion = nearest(name, known)
      const message = `${name} is not a variable of fleet and sets nothing`
      return warning(
        'unknown_variable',
        '',
        message,
        { file: `env ${name}` },
        suggestion === undefined ? {} : { suggestion },
      )
    })
}
