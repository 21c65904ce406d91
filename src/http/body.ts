import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { RouterError } from '../domain/errors'
import type { Holder } from './buffered'

const bytesPerMb = 1_000_000

const tooLarge = (limitBytes: number, what: string): RouterError =>
  new RouterError('request_too_large', `The ${what} is larger than the limit of ${limitBytes / bytesPerMb} MB.`, {
    hint: 'Raise server.max_body_mb in fleet.toml, or send less.',
  })

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** Piece by piece, so that what it grows to is known, and held, before it is all there. */
const decode = async (data: Uint8Array, encoding: string, limitBytes: number, holder: Holder): Promise<Uint8Array> => {
  const create = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (!create) {
    throw new RouterError('invalid_request', 'The Content-Encoding of the request is not supported.', {
      hint: `Use one of ${Object.keys(decoders).join(', ')}, or none.`,
    })
  }
  const decoder = create()
  decoder.end(data)
  const pieces: Uint8Array[] = []
  let size = 0
  try {
    for await (const piece of decoder as AsyncIterable<Uint8Array>) {
      size += piece.byteLength
      if (size > limitBytes) throw tooLarge(limitBytes, 'decoded request body')
      holder.hold(piece.byteLength)
      pieces.push(piece)
    }
  } catch (error) {
    if (error instanceof RouterError) throw error
    throw new RouterError('invalid_request', `The request body is not valid ${encoding}.`)
  }
  holder.release(data.byteLength)
  return Buffer.concat(pieces, size)
}

/** For a body without a declared length: stops taking more as soon as it is over a limit. */
const collect = async (body: ReadableStream<Uint8Array>, limitBytes: number, holder: Holder): Promise<Uint8Array> => {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, size)
    size += value.byteLength
    try {
      if (size > limitBytes) throw tooLarge(limitBytes, 'request body')
      holder.hold(value.byteLength)
    } catch (refusal) {
      // The server discards the rest, so the client still gets the answer and the connection stays in step.
      await reader.cancel()
      throw refusal
    }
    chunks.push(value)
  }
}

const left = (error: unknown): RouterError =>
  error instanceof RouterError
    ? error
    : new RouterError('client_disconnected', 'The client left while it was sending its request.', {}, error)

const receive = async (request: Request, limitBytes: number, holder: Holder): Promise<Uint8Array> => {
  try {
    return request.body === null ? new Uint8Array(0) : await collect(request.body, limitBytes, holder)
  } catch (error) {
    throw left(error)
  }
}

/** Of a declared length, as nearly every body is: one native read. */
const receiveDeclared = async (request: Request): Promise<Uint8Array> => {
  try {
    return new Uint8Array(await request.arrayBuffer())
  } catch (error) {
    throw left(error)
  }
}

/**
 * The whole body, decoded. `limitBytes` bounds what is read from the wire and, separately, what it decodes to. What is in
 * memory of it is held with `holder`: for the caller to release, also after an error. Throws `request_too_large` and
 * `no_capacity`, unread where the head tells, `invalid_request` (encoding), or `client_disconnected` when the upload breaks off.
 */
export const readBody = (request: Request, limitBytes: number, holder: Holder): Promise<Uint8Array> => {
  const declared = request.headers.get('content-length')
  const size = Number(declared)
  if (size > limitBytes) throw tooLarge(limitBytes, 'request body')
  if (size > 0) holder.hold(size)
  const received = declared === null ? receive(request, limitBytes, holder) : receiveDeclared(request)
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  if (encoding === '' || encoding === 'identity') return received
  return received.then((data) => decode(data, encoding, limitBytes, holder))
}
