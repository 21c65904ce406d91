import { createHash } from 'node:crypto'

/** The form in which a caller's key is kept and compared: lower-case hex of its SHA-256. */
export const hashKey = (key: string): string => createHash('sha256').update(key, 'utf8').digest('hex')
