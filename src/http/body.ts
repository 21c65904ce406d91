import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { RouterError } from '../domain/errors'

const bytesPerMb = 1_000_000

const tooLarge = (limitBytes: number, what: string): RouterError =>
  new RouterError('request_too_large', `The ${what} is larger than the limit of ${limitBytes / bytesPerMb} MB.`, {
    hint: 'Raise server.max_body_mb in fleet.toml, or send less.',
  })

type Decoder = (data: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

const decoders: Readonly<Record<string, Decoder>> = {
  gzip: promisify(gunzip) as Decoder,
  'x-gzip': promisify(gunzip) as Decoder,
  deflate: promisify(inflate) as Decoder,
  br: promisify(brotliDecompress) as Decoder,
  zstd: promisify(zstdDecompress) as Decoder,
}

const decode = async (data: Uint8Array, encoding: string, limitBytes: number): Promise<Uint8Array> => {
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (!decoder) {
    throw new RouterError('invalid_request', 'The Content-Encoding of the request is not supported.', {
      hint: `Use one of ${Object.keys(decoders).join(', ')}, or none.`,
    })
  }
  try {
    return await decoder(data, { maxOutputLength: limitBytes })
  } catch (error) {
    const code = (error as { code?: unknown }).code
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes, 'decoded request body')
    throw new RouterError('invalid_request', `The request body is not valid ${encoding}.`)
  }
}

/** For a body without a declared length: stops taking more as soon as it is over the limit. */
const collect = async (body: ReadableStream<Uint8Array>, limitBytes: number): Promise<Uint8Array> => {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, size)
    size += value.byteLength
    if (size > limitBytes) {
      // The server discards the rest, so the client still gets the answer and the connection stays in step.
      await reader.cancel()
      throw tooLarge(limitBytes, 'request body')
    }
    chunks.push(value)
  }
}

const left = (error: unknown): RouterError =>
  error instanceof RouterError
    ? error
    : new RouterError('client_disconnected', 'The client left while it was sending its request.', {}, error)

const receive = async (request: Request, limitBytes: number): Promise<Uint8Array> => {
  try {
    return request.body === null ? new Uint8Array(0) : await collect(request.body, limitBytes)
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
 * The whole body, decoded. `limitBytes` bounds what is read from the wire and, separately, what it decodes to.
 * Throws `request_too_large`, `invalid_request` (encoding), or `client_disconnected` when the upload breaks off.
 */
export const readBody = (request: Request, limitBytes: number): Promise<Uint8Array> => {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > limitBytes) return Promise.reject(tooLarge(limitBytes, 'request body'))
  const received = declared === null ? receive(request, limitBytes) : receiveDeclared(request)
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  if (encoding === '' || encoding === 'identity') return received
  return received.then((data) => decode(data, encoding, limitBytes))
}
