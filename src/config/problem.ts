/** A place in the file, or the variable or flag that a value came from (then without a line). Line and column from 1. */
export interface Place {
  readonly file: string
  readonly line?: number
  readonly column?: number
  /** Characters that the caret underlines. */
  readonly length?: number
}

export type Severity = 'error' | 'warning'

export type ProblemCode =
  | 'syntax'
  | 'unreadable_file'
  | 'unknown_key'
  | 'not_in_this_version'
  | 'wrong_type'
  | 'out_of_range'
  | 'unknown_value'
  | 'missing_key'
  | 'conflict'
  | 'duplicate_name'
  | 'duplicate_url'
  | 'own_address'
  | 'alias_loop'
  | 'alias_unused'
  | 'secret_in_file'
  | 'secret_missing'
  | 'secret_placeholder'
  | 'secret_shared'
  | 'open_listener'
  | 'no_keys'
  | 'keys_not_required'
  | 'unknown_variable'

/** One thing that is wrong with the configuration, with everything a person or an editor needs to point at it. */
export interface Problem extends Partial<Place> {
  readonly severity: Severity
  readonly code: ProblemCode
  readonly message: string
  /** The key, such as `nodes[2].kind`; empty for the file as a whole. */
  readonly path: string
  /** The word that was probably meant. */
  readonly suggestion?: string
  readonly notes?: readonly string[]
  /** Further places, where the problem lies between several of them. */
  readonly also?: readonly Place[]
}

type Details = Pick<Problem, 'suggestion' | 'notes' | 'also'>

/** An error; `details` members that are undefined are left out. */
export const failure = (
  code: ProblemCode,
  path: string,
  message: string,
  at?: Place,
  details: Details = {},
): Problem => ({
  severity: 'error',
  code,
  message,
  path,
  ...at,
  ...details,
})

/** The same as `failure`, for what can be run with. */
export const warning = (...what: Parameters<typeof failure>): Problem => ({ ...failure(...what), severity: 'warning' })

export const hasErrors = (problems: readonly Problem[]): boolean =>
  problems.some(({ severity }) => severity === 'error')

/** A place as people write it: `fleet.toml:12:3`, `env FLEET_SERVER_LISTEN`. */
export const showPlace = ({ file, line, column }: Place): string =>
  [file, line, column].filter((part) => part !== undefined).join(':')
