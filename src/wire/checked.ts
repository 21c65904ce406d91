/** Answers of media endpoints, passed on in the form that the node chose. */
import type { ReplyTransform } from './exchange'
import { gathered } from './gathered'
import { relayBytes } from './relay/bytes'

const isJson = (contentType: string): boolean => /^application\/(?:[\w.+-]*\+)?json\b/i.test(contentType)

/** JSON is looked at for an error and for its end; sound, pictures and plain text go on as they are. */
export const relayChecked = (contentType: string): ReplyTransform =>
  isJson(contentType) ? gathered(contentType, (_json, body) => ({ body })) : relayBytes(contentType)
