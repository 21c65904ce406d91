import { expect, test } from 'bun:test'
import type { Socket } from 'bun'
import { Connection } from '../../../src/nodes/http1-connection'
import { headOf, parseTarget } from '../../../src/nodes/http1-request'
import type { UpstreamSend } from '../../../src/nodes/upstream'

const target = parseTarget('http://rig:8080')
const owner = { onIdle() {}, onUnanswered() {}, onClosed() {} }

/** Takes ten bytes at a time. */
const slowConnection = () => {
  let taken = ''
  const socket = {
    setNoDelay() {},
    setKeepAlive() {},
    write(bytes: Uint8Array, from: number, length: number): number {
      const count = Math.min(10, length)
      taken += Buffer.from(bytes).toString('latin1', from, from + count)
      return count
    },
  }
  const connection = new Connection(target, socket as unknown as Socket<unknown>, owner, () => 0)
  return { connection, taken: () => taken }
}

test('what a slow socket has not taken of a request does not change with the requests after it', () => {
  const send = (to: ReturnType<typeof slowConnection>, body: string): void => {
    const { signal } = new AbortController()
    const request: UpstreamSend = {
      url: 'http://rig:8080/x',
      method: 'POST',
      headers: {},
      body: Buffer.from(body),
      connectTimeoutMs: 0,
      signal,
    }
    void to.connection.exchange(headOf({ target, path: '/x', heads: [] }, request), request)
  }
  const [one, other] = [slowConnection(), slowConnection()]

  send(one, 'the body of the first')
  send(other, 'the body of the second')
  for (let i = 0; i < 20; i += 1) for (const { connection } of [one, other]) connection.onDrain()

  expect(one.taken()).toBe(
    'POST /x HTTP/1.1\r\nhost: rig:8080\r\naccept-encoding: identity\r\ncontent-length: 21\r\n\r\nthe body of the first',
  )
  expect(other.taken()).toEndWith('content-length: 22\r\n\r\nthe body of the second')
})
