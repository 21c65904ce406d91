/** Multipart bodies, read only as far as routing needs it: files are found, never copied or decoded. */
import type { Edit } from './bytes'
import { decode, encode, find } from './bytes'
import { invalid } from './json/values'

/** One part of a form. Offsets count bytes of the body. */
export interface Part {
  readonly name: string
  /** Of a file. */
  readonly filename?: string
  readonly contentType?: string
  /** Where its content begins and ends. */
  readonly start: number
  readonly end: number
}

export interface Form {
  readonly body: Uint8Array
  readonly boundary: string
  readonly parts: readonly Part[]
  /** Where the closing line begins. */
  readonly closesAt: number
}

/** A form has no more than this; each costs a look. */
const maxParts = 1_000
/** Of the head of one part, in bytes. */
const maxHeadLength = 8_192
const blankLine = encode('\r\n\r\n')

const boundaryOf = (contentType: string): string | undefined => {
  const found = /^multipart\/form-data\b.*?;\s*boundary=(?:"([^"]{1,200})"|([^;\s]{1,200}))/i.exec(contentType)
  return found?.[1] ?? found?.[2]
}

/** A parameter of `content-disposition`, quoted or not. */
const parameter = (head: string, name: string): string | undefined => {
  const found = new RegExp(`[;\\s]${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\r\\n]*))`, 'i').exec(head)
  return found?.[1]?.replace(/\\(.)/g, '$1') ?? found?.[2]?.trim()
}

const partOf = (head: string, start: number, end: number): Part => {
  const name = parameter(head, 'name')
  if (name === undefined) throw invalid('A part of the form has no name.')
  const filename = parameter(head, 'filename')
  const contentType = /^content-type:([^\r\n]+)/im.exec(head)?.[1]?.trim()
  return {
    name,
    start,
    end,
    ...(filename !== undefined && { filename }),
    ...(contentType !== undefined && { contentType }),
  }
}

/** Throws `invalid_request` for what is not a whole form. */
export const readForm = (body: Uint8Array, contentType: string | null): Form => {
  const boundary = boundaryOf(contentType ?? '')
  if (boundary === undefined) throw invalid('The body must be multipart/form-data with a boundary.')
  const opening = encode(`--${boundary}`)
  const between = encode(`\r\n--${boundary}`)
  const parts: Part[] = []
  let at = find(body, opening)
  if (at < 0) throw invalid('The form has no part.')
  at += opening.length
  let closesAt = at
  while (parts.length < maxParts && !(body[at] === 0x2d && body[at + 1] === 0x2d)) {
    const headEnd = find(body, blankLine, at)
    const start = headEnd + blankLine.length
    const end = headEnd < 0 ? -1 : find(body, between, start)
    if (end < 0) throw invalid('The form breaks off in the middle of a part.')
    if (headEnd - at > maxHeadLength) throw invalid('The head of a part of the form is too long.')
    parts.push(partOf(decode(body.subarray(at, headEnd)), start, end))
    closesAt = end
    at = end + between.length
  }
  return { body, boundary, parts, closesAt }
}

export const fieldOf = ({ body, parts }: Form, name: string): string | undefined => {
  const part = parts.findLast((one) => one.name === name && one.filename === undefined)
  return part && decode(body.subarray(part.start, part.end))
}

export const filesOf = ({ parts }: Form, ...names: readonly string[]): readonly Part[] =>
  parts.filter(({ name, filename }) => filename !== undefined && names.includes(name))

/** Sets a field, all of its copies, or adds it as the last part; every other byte stays as it was. */
export const setField = (form: Form, name: string, value: string): Edit[] => {
  const found = form.parts.filter((part) => part.name === name)
  if (found.length > 0) return found.map(({ start, end }) => ({ start, end, text: value }))
  const text = `\r\n--${form.boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}`
  return [{ start: form.closesAt, end: form.closesAt, text }]
}

/** A form of texts and files, for nodes that take nothing else. */
export const writeForm = (
  boundary: string,
  parts: readonly {
    readonly name: string
    readonly filename?: string
    readonly contentType?: string
    readonly content: Uint8Array
  }[],
): Uint8Array =>
  Buffer.concat([
    ...parts.flatMap(({ name, filename, contentType, content }) => [
      encode(
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n${contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`}\r\n`,
      ),
      content,
      encode('\r\n'),
    ]),
    encode(`--${boundary}--\r\n`),
  ])
