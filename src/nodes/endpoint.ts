import { normalizeBaseUrl } from '../domain/base-url'

/** The address of `path` on the server; the base may be written with `/v1`, `/api` or a trailing slash. */
export const endpoint = (baseUrl: string, path: string): string => `${rootOf(baseUrl)}${path}`

/** The server root for any way to write it; text that is no base URL stays as it is and fails when it is used. */
export const rootOf = (baseUrl: string): string => {
  const base = normalizeBaseUrl(baseUrl)
  return 'url' in base ? base.url : baseUrl
}
