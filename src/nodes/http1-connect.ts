import type { Socket, SocketHandler } from 'bun'
import type { Failure } from '../domain/facts'
import { NodeFault } from '../ports/node-gateway'
import { Connection, type ConnectionOwner } from './http1-connection'
import type { Target } from './http1-request'

export interface ConnectOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly now: () => number
  readonly owner: ConnectionOwner
  /** Further certificate authorities to trust, PEM. */
  readonly ca?: string
}

/** What hangs on a socket: the attempt to connect, then the connection. */
interface SocketState {
  connection: Connection | undefined
  /** TCP is up; with TLS the handshake is still to come. */
  opened(socket: Socket<SocketState>): void
  /** These two settle the attempt; later calls do nothing. */
  established(socket: Socket<SocketState>): void
  failed(kind: Failure['class'], message: string): void
  readonly tls: boolean
}

/**
 * Opens a connection within the deadline, TLS handshake included. Rejects with a `NodeFault` of class `dns`, `connect`,
 * `tls` or `connect_timeout`. Bun cannot take a connect back: an abandoned one is closed when it comes up.
 */
export const connect = (target: Target, options: ConnectOptions): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const { signal, owner, now } = options
    const startedAt = now()
    let isSettled = false
    let handshaking: Socket<SocketState> | undefined
    const settle = (): boolean => {
      if (isSettled) return false
      isSettled = true
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      return true
    }
    const failed = (kind: Failure['class'], message: string): void => {
      if (!settle()) return
      handshaking?.terminate()
      reject(new NodeFault({ class: kind, message, bytes: 0, elapsedMs: now() - startedAt }))
    }
    const opened = (socket: Socket<SocketState>): void => {
      if (isSettled) socket.terminate()
      else if (target.tls) handshaking = socket
      else established(socket)
    }
    const established = (socket: Socket<SocketState>): void => {
      if (!settle()) return
      const connection = new Connection(target, socket, owner, now)
      socket.data.connection = connection
      resolve(connection)
    }
    const onAbort = (): void => failed('connect', 'the request was cancelled')
    const timer = setTimeout(
      () =>
        failed(
          'connect_timeout',
          `no connection to ${target.host} within ${options.timeoutMs} ms (limits.connect_timeout)`,
        ),
      options.timeoutMs,
    )
    signal.addEventListener('abort', onAbort)

    const data: SocketState = { connection: undefined, opened, established, failed, tls: target.tls }
    Bun.connect<SocketState>({
      hostname: target.hostname,
      port: target.port,
      ...(target.tls ? { tls: options.ca === undefined ? true : { ca: options.ca } } : {}),
      data,
      socket: handlers,
    }).catch((error: Error) => failed(...faultOf(error, target)))
  })

/** Every event gets a buffer of its own from Bun (measured on 1.4.4), so what is kept of it needs no copy. */
const handlers: SocketHandler<SocketState> = {
  open(socket) {
    socket.data.opened(socket)
  },
  handshake(socket, _success, error) {
    if (!error && socket.authorized) {
      socket.data.established(socket)
      return
    }
    const reason = (error as NodeJS.ErrnoException | null)?.code ?? 'the certificate is not trusted'
    socket.data.failed('tls', `TLS to the node failed: ${reason}`)
  },
  data(socket, bytes) {
    socket.data.connection?.onData(bytes)
  },
  drain(socket) {
    socket.data.connection?.onDrain()
  },
  end(socket) {
    socket.data.connection?.onEnd()
  },
  close(socket, error) {
    const { connection, failed, tls } = socket.data
    if (connection) connection.onClose(error)
    else failed(tls ? 'tls' : 'connect', 'the node closed the connection at once')
  },
  error(socket, error) {
    socket.data.connection?.onClose(error)
    socket.terminate()
  },
  // The promise of `Bun.connect` tells the same; without this handler Bun also reports it as unhandled.
  connectError() {},
}

const faultOf = (error: Error, target: Target): [Failure['class'], string] => {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  if (code === 'ENOTFOUND' || code.startsWith('EAI_') || code.startsWith('DNS_') || syscall === 'getaddrinfo') {
    return ['dns', `the name ${target.hostname} does not resolve`]
  }
  if (code === 'ECONNREFUSED') return ['connect', `${target.host} refuses connections`]
  if (code === 'ETIMEDOUT') return ['connect_timeout', `${target.host} does not answer`]
  return ['connect', `no connection to ${target.host}: ${code || error.message}`]
}
