/** A complete request. Header names are lower case. */
export interface FakeRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** As sent, with the query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Longest head in bytes. */
const MAX_HEAD = 64 * 1024

const CRLF = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

interface Head {
  readonly method: string
  readonly target: string
  readonly headers: Record<string, string>
}

/** Reads HTTP/1.1 requests out of a byte stream. One at a time, so that pipelined ones wait for their turn. */
export interface RequestParser {
  push(bytes: Uint8Array): void
  /** The next complete request; undefined: more bytes are needed; `bad`: not HTTP. */
  next(): FakeRequest | 'bad' | undefined
  /** The head asked for `100 Continue` and no body has come yet. Answers true once. */
  wantsContinue(): boolean
}

const parseHead = (text: string): Head | undefined => {
  const [line = '', ...rest] = text.split('\r\n')
  const [method, target, version] = line.split(' ')
  if (!method || !target || !version?.startsWith('HTTP/1.')) return undefined
  const headers: Record<string, string> = {}
  for (const field of rest) {
    const colon = field.indexOf(':')
    if (colon < 1) return undefined
    headers[field.slice(0, colon).toLowerCase()] = field.slice(colon + 1).trim()
  }
  return { method, target, headers }
}

export const createRequestParser = (): RequestParser => {
  let pieces: Buffer[] = []
  let size = 0
  let head: Head | undefined
  let continued = false

  /** Joins lazily, so that a large body costs one copy. */
  const joined = (): Buffer => {
    if (pieces.length > 1) pieces = [Buffer.concat(pieces, size)]
    return pieces[0] ?? Buffer.alloc(0)
  }

  const consume = (bytes: number): void => {
    const rest = joined().subarray(bytes)
    pieces = rest.length > 0 ? [rest] : []
    size = rest.length
  }

  const readHead = (): 'bad' | undefined => {
    const data = joined()
    const end = data.indexOf(HEAD_END)
    if (end < 0) return data.length > MAX_HEAD ? 'bad' : undefined
    head = parseHead(data.toString('latin1', 0, end))
    consume(end + HEAD_END.length)
    return head ? undefined : 'bad'
  }

  const readChunked = (): Buffer | 'bad' | undefined => {
    const data = joined()
    const parts: Buffer[] = []
    for (let at = 0; ; ) {
      const lineEnd = data.indexOf(CRLF, at)
      if (lineEnd < 0) return undefined
      const length = Number.parseInt(data.toString('latin1', at, lineEnd), 16)
      if (Number.isNaN(length)) return 'bad'
      const start = lineEnd + CRLF.length
      if (length === 0) {
        const end = data.indexOf(CRLF, start)
        if (end < 0) return undefined
        consume(end + CRLF.length)
        return Buffer.concat(parts)
      }
      if (data.length < start + length + CRLF.length) return undefined
      parts.push(data.subarray(start, start + length))
      at = start + length + CRLF.length
    }
  }

  const readBody = (headers: Record<string, string>): Buffer | 'bad' | undefined => {
    if (headers['transfer-encoding']?.toLowerCase().includes('chunked')) return readChunked()
    const length = Number(headers['content-length'] ?? 0)
    if (!Number.isInteger(length) || length < 0) return 'bad'
    if (size < length) return undefined
    const body = joined().subarray(0, length)
    consume(length)
    return body
  }

  return {
    push(bytes) {
      // The socket reuses its buffer once the handler returned.
      pieces.push(Buffer.from(bytes))
      size += bytes.length
    },
    next() {
      if (!head && readHead() === 'bad') return 'bad'
      if (!head) return undefined
      const body = readBody(head.headers)
      if (body === undefined || body === 'bad') return body
      const { method, target, headers } = head
      head = undefined
      continued = false
      const mark = target.indexOf('?')
      const path = mark < 0 ? target : target.slice(0, mark)
      return { method, target, path, query: new URLSearchParams(mark < 0 ? '' : target.slice(mark)), headers, body }
    },
    wantsContinue() {
      if (continued || head?.headers.expect?.toLowerCase() !== '100-continue') return false
      continued = true
      return true
    },
  }
}
