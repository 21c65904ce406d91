const SECOND = 1000
const unitMs = { ms: 1, s: SECOND, m: 60 * SECOND, h: 3600 * SECOND, d: 24 * 3600 * SECOND } as const

/** Milliseconds of `250ms`, `30s`, `3m`, `2h` or `7d`; undefined for anything else, a missing unit included. */
export const parseDuration = (text: string): number | undefined => {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/.exec(text)
  return match ? Number(match[1]) * unitMs[match[2] as keyof typeof unitMs] : undefined
}
