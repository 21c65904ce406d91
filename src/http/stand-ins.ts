import { checkModelName } from '../wire/model-name'

/** More are no fallback but a search. */
const maxNames = 16
const maxNameLength = 256

const nobody: readonly string[] = []

/** Names beyond printable ASCII come percent-encoded; one that only looks like it is meant as it stands. */
const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** The models of `X-Fleet-Fallback`, in order; throws `invalid_request` for what can be none. */
export const standInsOf = (value: string | null): readonly string[] =>
  value === null
    ? nobody
    : value
        .split(',')
        .map((name) => decoded(name.trim()).slice(0, maxNameLength))
        .filter((name) => name !== '')
        .slice(0, maxNames)
        .map(checkModelName)
