import type { Picture } from './canonical'
import { invalid } from './json/values'

/** What the first bytes of a picture look like in base64. */
const signatures: readonly (readonly [prefix: string, mediaType: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['Qk', 'image/bmp'],
]

const sniff = (base64: string): string => signatures.find(([prefix]) => base64.startsWith(prefix))?.[1] ?? 'image/png'

const lineBreaks = /\s+/g
const alphabet = /^[A-Za-z0-9+/]+={0,2}$/
const padding = /={1,2}$/

/** Plain base64 without line breaks, in the standard alphabet, padded; engines with strict decoders take it as it is. */
const clean = (raw: string, param: string): string => {
  const joined = raw.replace(lineBreaks, '').replaceAll('-', '+').replaceAll('_', '/')
  // Looked at before it is cut: searching for padding at the end takes the square of a text that is nothing but padding.
  const isBase64 = alphabet.test(joined)
  const bare = isBase64 ? joined.replace(padding, '') : ''
  if (!isBase64 || bare.length % 4 === 1) throw invalid('A picture is not valid base64.', param)
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, '=')
}

/** `data:<type>[;name=value];base64,<data>`, in any case; undefined when it is no data URL at all. */
const dataUrl = (url: string, param: string): Picture | undefined => {
  if (url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const comma = url.indexOf(',')
  const [mediaType = '', ...parameters] = url
    .slice(5, Math.max(comma, 5))
    .split(';')
    .map((entry) => entry.trim().toLowerCase())
  if (comma < 0 || !parameters.includes('base64')) throw invalid('A picture must be a base64 data URL.', param)
  const base64 = clean(url.slice(comma + 1), param)
  return { kind: 'inline', mediaType: mediaType === '' ? sniff(base64) : mediaType, base64 }
}

/** From an OpenAI `image_url`. */
export const pictureFromUrl = (url: string, param: string): Picture => {
  const inline = dataUrl(url.trim(), param)
  if (inline) return inline
  if (/^https?:\/\//i.test(url)) return { kind: 'remote', url }
  throw invalid('A picture must be a base64 data URL or an http(s) URL.', param)
}

/** From an entry of Ollama's `images`: bare base64; a data URL is taken too, since many clients send one. */
export const pictureFromBase64 = (text: string, param: string): Picture => {
  const inline = dataUrl(text.trim(), param)
  if (inline) return inline
  const base64 = clean(text, param)
  return { kind: 'inline', mediaType: sniff(base64), base64 }
}

export const pictureUrl = (picture: Picture): string =>
  picture.kind === 'remote' ? picture.url : `data:${picture.mediaType};base64,${picture.base64}`

/** Bare base64. This router does not download pictures, so a remote one cannot go to an engine that takes only bytes. */
export const pictureBase64 = (picture: Picture, param: string): string => {
  if (picture.kind === 'inline') return picture.base64
  throw invalid(
    'This model runs on an engine that cannot fetch pictures; send the picture as a base64 data URL.',
    param,
  )
}
