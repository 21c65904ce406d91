import { nearest } from '../domain/nearest'
import { RouterError } from '../domain/errors'
import { preflight } from './cors'
import { refuserFor } from './refuser'
import { pathOf, type Refuser, type Route } from './route'

/** A longer path is not a typing error. */
const maxSuggestedLength = 80

/** True when `pattern` (see `Route.path`) covers the path, a trailing slash and a doubled `/v1` included. */
const covers = (pattern: string, path: string): boolean => {
  const plain = path.replace(/^\/v1(?=\/v1\/)/, '').replace(/(?<=.)\/$/, '')
  if (pattern.endsWith('/*')) return plain.startsWith(pattern.slice(0, -1))
  const expected = pattern.split('/')
  const actual = plain.split('/')
  return (
    expected.length === actual.length && expected.every((part, index) => part.startsWith(':') || part === actual[index])
  )
}

/** A base URL without its `/v1`, or with more before it than there should be. */
const sameEnd = (path: string, known: readonly string[]): string | undefined =>
  known.find((one) => one.endsWith(path) || (one !== '/' && path.endsWith(one)))

const notFound = (path: string, routes: readonly Route[]): RouterError => {
  const known = routes.map((route) => route.path).filter((pattern) => !/[:*]/.test(pattern))
  const suggestion = path.length > maxSuggestedLength ? undefined : (nearest(path, known) ?? sameEnd(path, known))
  // A client of an API that is not offered is told which ones are.
  const inference = routes
    .filter(({ method, access, patient }) => method === 'POST' && access === 'inference' && patient)
    .map((route) => route.path)
  return new RouterError('not_found', `Unknown path ${path.slice(0, maxSuggestedLength)}.`, {
    hint: suggestion === undefined ? `Models are run by POST ${inference.join(', ')}.` : `Did you mean ${suggestion}?`,
  })
}

/** What answers when no route does: `OPTIONS`, a wrong method (405 with `Allow`), an unknown path (404 with the nearest). */
export const createFallback = (routes: readonly Route[]) => {
  return (request: Request): Route => {
    const path = pathOf(request.url)
    const methods = [...new Set(routes.filter((route) => covers(route.path, path)).map((route) => route.method))]
    const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : methods
    const dialect = refuserFor(path)

    const refuser: Refuser = {
      refuse: (error) => {
        const response = dialect.refuse(error)
        if (error.code === 'method_not_allowed') response.headers.set('allow', [...allowed, 'OPTIONS'].join(', '))
        return response
      },
    }
    const handle = (): Response => {
      if (request.method === 'OPTIONS') return preflight(request, allowed)
      if (methods.length === 0) throw notFound(path, routes)
      throw new RouterError(
        'method_not_allowed',
        `${request.method} is not a method of ${path}; use ${allowed.join(' or ')}.`,
      )
    }
    return { method: 'GET', path: '/*', access: 'open', refuser, handle }
  }
}
