import { expect, test } from 'bun:test'
import { createGuard } from '../../src/http/guard'
import { isLoopbackAddress } from '../../src/http/origin'
import { native } from '../../src/http/refuser'
import type { Route } from '../../src/http/route'
import { testConfig } from '../support/host'

const route = (access: Route['access']): Route => ({
  method: 'GET',
  path: '/x',
  access,
  refuser: native,
  handle: () => new Response(),
})

const { server: defaults } = testConfig()
const server = { ...defaults, port: 11_435 }
const guard = createGuard({ server, auth: { mode: 'open', keys: [] } }, 'inst-1')

test('without keys, metrics are refused to other machines, and model lists are not', () => {
  const request = new Request('http://localhost/x')

  expect(() => guard.check(route('metrics'), request, { isLocal: () => false })).toThrow('for this machine only')
  expect(guard.check(route('metrics'), request, { isLocal: () => true })).toBeUndefined()
  expect(guard.check(route('inference'), request, { isLocal: () => false })).toBeUndefined()
})

test.each([
  ['127.0.0.1', true],
  ['127.8.9.1', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['10.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['fe80::1', false],
])('the peer %s is on this machine: %p', (address, local) => {
  expect(isLoopbackAddress(address)).toBe(local)
})
