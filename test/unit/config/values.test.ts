import { describe, expect, test } from 'bun:test'
import { parseDuration } from '../../../src/config/duration'
import { hashKey } from '../../../src/config/hash-key'
import { parseListener } from '../../../src/config/listen'
import { loadToml } from './load-toml'

describe('durations', () => {
  test.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['3m', 180_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['30', undefined],
    ['1h30m', undefined],
    ['', undefined],
  ])('%j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test('one that a timer could not hold is refused, except for what is kept', () => {
    expect(loadToml('policy.hold_timeout = "25d"').problems).toMatchObject([{ code: 'out_of_range' }])
    expect(loadToml('state.keep_traces = "365d"').config?.state.keepTracesMs).toBe(365 * 86_400_000)
  })

  test('a breaker may not wait longer at first than at most', () => {
    expect(loadToml('health.breaker_retry = "2m"').problems).toMatchObject([{ code: 'conflict', line: 1 }])
  })
})

describe('the bytes of all bodies', () => {
  const loaded = (text: string) => {
    const { config, problems, values } = loadToml(text)
    const shown = values.find(({ key }) => key === 'server.max_buffered_mb')?.value
    return { bytes: config?.server.maxBufferedBytes, shown, problems }
  }

  test('grow with what one may have, unless they are written', () => {
    expect(loaded('')).toMatchObject({ bytes: 1_024e6, shown: 1024, problems: [] })
    expect(loaded('server.max_body_mb = 2000')).toMatchObject({ bytes: 2_000e6, shown: 2000, problems: [] })
    expect(loaded('server.max_buffered_mb = 64')).toMatchObject({ bytes: 64e6, shown: 64, problems: [] })
  })

  test('are not less than one may have', () => {
    const { bytes, problems } = loaded('server.max_body_mb = 100\nserver.max_buffered_mb = 99')

    expect(bytes).toBeUndefined()
    expect(problems).toMatchObject([{ code: 'conflict', path: 'server.max_buffered_mb', line: 2 }])
  })
})

describe('listeners', () => {
  test.each([
    ['127.0.0.1:11435', { host: '127.0.0.1', port: 11435 }],
    ['router.lan:80', { host: 'router.lan', port: 80 }],
    [':8080', { host: '0.0.0.0', port: 8080 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['::1:80', undefined],
    ['127.0.0.1', undefined],
    ['11435', undefined],
    ['300.0.0.1:1', undefined],
    ['127.0.0.1:70000', undefined],
    ['http://127.0.0.1:1', undefined],
  ])('%s', (text, listener) => {
    expect(parseListener(text)).toEqual(listener)
  })

  test.each(['0.0.0.0:1', '[::]:1', '10.0.0.1:1', 'router.lan:1', '127.evil.example:1', ':1'])(
    '%s needs keys',
    (listen) => {
      expect(loadToml(`server.listen = "${listen}"`).problems).toMatchObject([
        { code: 'open_listener', severity: 'error' },
      ])
    },
  )

  test.each(['127.0.0.1:1', '127.9.9.9:1', '[::1]:1', 'localhost:1'])('%s does not', (listen) => {
    expect(loadToml(`server.listen = "${listen}"`).problems).toEqual([])
  })
})

describe('nodes', () => {
  const full = `[[nodes]]
name = "box-3"
kind = "ollama"
base_url = "http://10.0.0.30:11434/v1/"
vram_mb = 24000
bandwidth_gbps = 936.2
max_concurrency = 2
roles = ["chat", "vision"]
models = ["gemma3:27b"]
tags = ["gpu"]
distance = 2
keep_alive = "-1"
context_tokens = 32768
key_env = "BOX_KEY"
`

  test('every key arrives in the description', () => {
    const { config, problems } = loadToml(full, { env: { BOX_KEY: 'box-key-0123' } })

    expect(problems).toEqual([])
    expect(config?.nodes).toEqual([
      {
        name: 'box-3',
        kind: 'ollama',
        url: 'http://10.0.0.30:11434',
        origin: 'configured',
        memoryGb: 24,
        bandwidthGBps: 936.2,
        maxConcurrency: 2,
        roles: ['chat', 'vision'],
        models: ['gemma3:27b'],
        tags: ['gpu'],
        distance: 2,
        keepAlive: '-1m',
        contextTokens: 32768,
        key: 'box-key-0123',
      },
    ])
  })

  test('the key of a node is in its description and in no list of values', () => {
    const loaded = loadToml(full, { env: { BOX_KEY: 'box-key-0123' } })

    expect(JSON.stringify([loaded.values, loaded.problems])).not.toContain('box-key-0123')
  })

  test('days become hours for keep_alive, which the node could not read', () => {
    const { config } = loadToml(full.replace('"-1"', '"2d"'), { env: { BOX_KEY: 'k' } })

    expect(config?.nodes[0]?.keepAlive).toBe('48h')
  })

  test.each(['ollama', 'lmstudio', 'llamaswap', 'llamacpp', 'vllm', 'openai'])('%s is a kind', (kind) => {
    const { config, problems } = loadToml(`[[nodes]]\nname = "a"\nkind = "${kind}"\nurl = "http://h:1"`)

    expect(problems).toEqual([])
    expect(config?.nodes[0]?.kind).toBe(kind as never)
  })

  test('residency_url is a server root of its own, and not our own address', () => {
    const node = (address: string) =>
      `[[nodes]]\nname = "a"\nkind = "llamaswap"\nbase_url = "http://h:1/v1"\nresidency_url = "${address}"`

    expect(loadToml(node('h:2/v1/')).config?.nodes[0]).toMatchObject({ url: 'http://h:1', residencyUrl: 'http://h:2' })
    expect(loadToml(node('http://localhost:11435')).problems).toMatchObject([
      { code: 'own_address', path: 'nodes[0].residency_url', line: 5 },
    ])
  })

  test('two words for one setting are a conflict', () => {
    const { problems } = loadToml(`${full}memory_gb = 24\nurl = "http://10.0.0.30:11434"`, { env: { BOX_KEY: 'k' } })

    expect(problems.map(({ code, path }) => [code, path])).toEqual([
      ['conflict', 'nodes[0].base_url'],
      ['conflict', 'nodes[0].vram_mb'],
    ])
  })

  test('what a node must have is missed at its header', () => {
    const { problems } = loadToml('\n[[nodes]]\nmodels = ["a"]')

    expect(problems.map(({ line, message }) => [line, message])).toEqual([
      [2, 'nodes[0] has no "name"'],
      [2, 'nodes[0] has no "kind"'],
      [2, 'nodes[0] has no "url"'],
    ])
  })

  test('a table where a list of tables belongs says how it is written', () => {
    expect(loadToml('[nodes]\nname = "a"').problems).toMatchObject([
      { code: 'wrong_type', message: 'nodes must be a list of tables, written [[nodes]]' },
    ])
  })

  test.each(['a/b', '#a', 'a b', '', 'x'.repeat(65)])('%j is no name', (name) => {
    expect(loadToml(full.replace('box-3', name), { env: { BOX_KEY: 'k' } }).problems).toMatchObject([
      { path: 'nodes[0].name' },
    ])
  })

  test('keys of objects that JavaScript brings along are unknown keys', () => {
    expect(loadToml('constructor = 1\ntoString = 2').problems.map(({ code }) => code)).toEqual([
      'unknown_key',
      'unknown_key',
    ])
  })
})

describe('keys of callers', () => {
  const key = (source: string) => `[auth]\nmode = "keys"\n[[auth.keys]]\nname = "me"\n${source}\nscopes = ["admin"]`
  const expected = [{ name: 'me', sha256: hashKey('fleet_0123'), scopes: ['admin' as const] }]

  test('are hashed, wherever they come from', () => {
    const loads = [
      loadToml(key('key_env = "MY_KEY"'), { env: { MY_KEY: 'fleet_0123' } }),
      loadToml(key('key_file = "/run/my.key"'), { secrets: { '/run/my.key': 'fleet_0123\n' } }),
      loadToml(key(`key_hash = "sha256:${hashKey('fleet_0123').toUpperCase()}"`)),
    ]

    for (const { config } of loads) expect(config?.auth.keys).toEqual(expected)
    expect(JSON.stringify(loads)).not.toContain('fleet_0123')
  })

  test('the hash is withheld from the overview', () => {
    const { values } = loadToml(key(`key_hash = "sha256:${hashKey('fleet_0123')}"`))

    expect(values.find((value) => value.key === 'auth.keys[0].key_hash')).toMatchObject({ value: null, secret: true })
  })

  test('hashing is SHA-256 in lower-case hex', () => {
    expect(hashKey('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })

  test('an entry needs exactly one source', () => {
    expect(loadToml(key('')).problems).toMatchObject([{ code: 'missing_key', line: 3 }])
    expect(loadToml(key('key_env = "A"\nkey_file = "b"')).problems).toMatchObject([{ code: 'conflict', line: 3 }])
  })

  test.each(['changeme', 'sk-...', 'sk-xxxx', 'your-api-key', '<key>', 'TODO', 'fleet key', 'schlüssel'])(
    '%j is no key',
    (secret) => {
      expect(loadToml(key('key_env = "K"'), { env: { K: secret } }).problems).toMatchObject([
        { code: 'secret_placeholder', line: 5 },
      ])
    },
  )

  test('on an open loopback listener they are pointed out as not required, unless that is said', () => {
    const open = `[[auth.keys]]\nname = "me"\nkey_hash = "sha256:${'0'.repeat(64)}"`

    expect(loadToml(open).problems).toMatchObject([{ severity: 'warning', code: 'keys_not_required' }])
    expect(loadToml(`auth.mode = "open"\n${open}`).problems).toEqual([])
  })
})

test('the configuration is frozen through and through', () => {
  const { config } = loadToml('[[nodes]]\nname = "a"\nkind = "ollama"\nurl = "http://h:1"\ntags = ["x"]')

  expect([config, config?.limits, config?.nodes, config?.nodes[0], config?.nodes[0]?.tags].every(Object.isFrozen)).toBe(
    true,
  )
})
