const unprintable = /[^\x20-\x7e]+/g
const hasUnprintable = /[^\x20-\x7e]/
const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** A header value that every client can read: what is not printable ASCII is percent-encoded. Bun answers 500 to a raw one. */
export const headerValue = (value: string): string =>
  hasUnprintable.test(value) ? value.replace(unprintable, (part) => encodeURIComponent(part.toWellFormed())) : value

/** Sets every header that can be sent; one with an impossible name is left out. */
export const setHeaders = (target: Headers, values: Readonly<Record<string, string>>): void => {
  for (const key in values) {
    if (name.test(key)) target.set(key, headerValue(values[key] as string))
  }
}
