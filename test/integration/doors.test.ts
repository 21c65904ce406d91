import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { check } from '../../src/cli/check'
import { hashKey } from '../../src/config/hash-key'
import { fleetShape, loadConfig } from '../../src/config/load'
import { settableKeys, variableName } from '../../src/config/overrides'
import type { Scope } from '../../src/domain/config'
import { dialects } from '../../src/wire'
import { withRouter } from '../support/router'

const OURS = 'router-key-0123456789'
const THEIRS = 'node-key-0123456789'

/** The whole answer to one request that is written out by hand, since libraries refuse some of these headers. */
const exchange = (port: number, method: string, path: string, lines: readonly string[], body = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1')
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
    const length = body === '' ? [] : [`content-length: ${Buffer.byteLength(body)}`]
    socket.write([`${method} ${path} HTTP/1.1`, 'host: localhost', ...lines, ...length, '', body].join('\r\n'))
  })

test('BL-A01 no credential and no hop-by-hop header of a client reaches a node; the node gets its own key', () => {
  const scopes: Scope[] = ['inference', 'admin', 'metrics']
  return withRouter(
    [
      { kind: 'llamacpp', apiKey: THEIRS },
      { kind: 'ollama', apiKey: THEIRS },
      { kind: 'openai', apiKey: THEIRS },
    ],
    {
      log: { level: 'silent' },
      auth: { mode: 'keys', keys: [{ name: 'k', sha256: hashKey(OURS), scopes }] },
      describe: () => ({ key: THEIRS }),
    },
    async ({ router, fakes, of }) => {
      const secrets = [
        `authorization: Bearer ${OURS}`,
        `x-api-key: ${OURS}`,
        `cookie: session=${OURS}`,
        `proxy-authorization: Basic ${OURS}`,
        'x-forwarded-for: 10.9.8.7',
      ]
      const hops = ['connection: close, x-hop', `x-hop: ${OURS}`, 'te: trailers', 'trailer: x-later', 'upgrade: h2c']
      const body = JSON.stringify({
        model: 'm',
        stream: false,
        messages: [{ role: 'user', content: 'hi' }],
        prompt: 'hi',
        input: 'hi',
      })
      const paths = dialects.flatMap((dialect) => dialect.inference.map(({ path }) => path))
      expect(paths).toContain('/v1/chat/completions')
      for (const node of ['a', 'b', 'c']) {
        for (const path of paths) {
          const lines = [...secrets, ...hops, `x-fleet-node: ${node}`, 'content-type: application/json']
          expect(await exchange(router.port, 'POST', path, lines, body)).not.toContain(OURS)
        }
      }
      for (const path of ['/v1/models', '/api/tags', '/api/ps', '/api/v1/nodes', '/api/v1/actors', '/metrics'])
        expect(await exchange(router.port, 'GET', path, [...secrets, ...hops])).not.toMatch(`${OURS}|${THEIRS}`)
      await exchange(router.port, 'POST', '/api/show', [...secrets, ...hops], '{"model":"m"}')

      expect(of('request.settled').filter(({ outcome }) => outcome.end === 'completed').length).toBeGreaterThan(5)
      for (const fake of fakes) {
        const inference = fake.log.filter(({ method, path }) => method === 'POST' && /chat|generate/.test(path))
        expect(inference.length).toBeGreaterThan(0)
        for (const { headers } of fake.log) {
          expect(JSON.stringify(headers)).not.toMatch(`${OURS}|10\\.9\\.8\\.7`)
          expect(headers.authorization).toBe(`Bearer ${THEIRS}`)
          for (const name of ['x-api-key', 'cookie', 'proxy-authorization', 'x-hop', 'te', 'trailer', 'upgrade'])
            expect(headers[name]).toBeUndefined()
        }
      }
      expect(JSON.stringify(of('request.settled'))).not.toMatch(`${OURS}|${THEIRS}`)
    },
  )
})

describe('BL-G03 a number that is not understood is an error, never the default', () => {
  const keys = [...settableKeys(fleetShape)]
  const numbers = keys.filter(([, shape]) => shape.type === 'integer' || shape.type === 'number')
  const durations = keys.filter(([, shape]) => 'format' in shape && shape.format === 'duration')
  const load = (key: string, text: string) => {
    const { problems, config } = loadConfig({ env: { [variableName(key)]: text }, flags: {}, readSecret: () => '' })
    return { errors: problems.filter(({ severity }) => severity === 'error'), config }
  }
  const WRONG = ['-1', '', '1e3', ' 4 ', '٤', '0x10', '+4', '4,5', 'NaN']

  // Points and weights may be negative; everything else counts something.
  const isSigned = (shape: (typeof numbers)[number][1]): boolean =>
    (shape as { minimum?: number }).minimum === undefined || ((shape as { minimum?: number }).minimum ?? 0) < 0

  test('only points and weights may be negative', () => {
    const signed = numbers.filter(([, shape]) => isSigned(shape) && !('exclusiveMinimum' in shape)).map(([key]) => key)
    expect(signed.filter((key) => !/^(score|cost)\./.test(key))).toEqual([])
    for (const key of signed) expect(load(key, '-1').errors).toEqual([])
  })

  test.each(numbers)('%s', (key, shape) => {
    const negative = isSigned(shape) && !('exclusiveMinimum' in shape)
    for (const text of [...WRONG.filter((wrong) => !negative || wrong !== '-1'), '5m']) {
      const { errors, config } = load(key, text)
      expect(config).toBeUndefined()
      expect(errors).toMatchObject([{ path: key, file: `env ${variableName(key)}` }])
    }
  })

  test.each(durations.map(([key]) => key))('%s takes a unit and nothing else', (key) => {
    for (const text of [...WRONG, '4']) expect(load(key, text).errors).toMatchObject([{ path: key }])
    expect(load(key, '5m').errors.map(({ code }) => code)).not.toContain('unknown_value')
  })

  test('a flag is read by the same rule', () => {
    for (const listen of ['-1', '127.0.0.1:1e3', '127.0.0.1: 4 ', '127.0.0.1:٤', '127.0.0.1:99999']) {
      const { config } = loadConfig({ env: {}, flags: { 'server.listen': listen }, readSecret: () => '' })
      expect(config).toBeUndefined()
    }
  })

  test('fleet check prints the value in force and where it comes from', () => {
    let printed = ''
    const code = check([], {
      env: { FLEET_POLICY_RETRIES: '4' },
      cwd: '/nowhere',
      read: () => '',
      exists: () => false,
      out: (text) => {
        printed += text
      },
      err: () => {},
    })

    expect(code).toBe(0)
    expect(printed).toMatch(/policy\.retries +4 +env FLEET_POLICY_RETRIES\n/)
    for (const [key] of numbers) expect(printed).toContain(key)
  })
})
