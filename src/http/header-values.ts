const unprintable = /[^\x20-\x7e]+/g
const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** A header value that every client can read: what is not printable ASCII is percent-encoded. Bun answers 500 to a raw one. */
export const headerValue = (value: string): string =>
  value.replace(unprintable, (part) => encodeURIComponent(part.toWellFormed()))

/** Sets every header that can be sent; one with an impossible name is left out. */
export const setHeaders = (target: Headers, values: Readonly<Record<string, string>>): void => {
  for (const [key, value] of Object.entries(values)) {
    if (name.test(key)) target.set(key, headerValue(value))
  }
}
