import { describe, expect, test } from 'bun:test'
import { fleetShape } from '../../../src/config/load'
import { settableKeys, variableName } from '../../../src/config/overrides'
import { loadToml } from './load-toml'

const shownFor = (key: string, loaded: ReturnType<typeof loadToml>) => loaded.values.find((value) => value.key === key)

describe('where a value comes from', () => {
  test('flag wins over variable, variable over file, file over default', () => {
    const file = '\n[server]\nlisten = "127.0.0.1:3"'
    const env = { FLEET_SERVER_LISTEN: '127.0.0.1:2' }
    const flags = { 'server.listen': '127.0.0.1:1' }

    const loads = [loadToml(file, { env, flags }), loadToml(file, { env }), loadToml(file), loadToml('')]

    expect(loads.map(({ config }) => config?.server.port)).toEqual([1, 2, 3, 11435])
    expect(loads.map((loaded) => shownFor('server.listen', loaded))).toEqual([
      { key: 'server.listen', value: '127.0.0.1:1', origin: 'flag' },
      { key: 'server.listen', value: '127.0.0.1:2', origin: 'env FLEET_SERVER_LISTEN' },
      { key: 'server.listen', value: '127.0.0.1:3', origin: 'fleet.toml:3' },
      { key: 'server.listen', value: '127.0.0.1:11435', origin: 'default' },
    ])
  })

  test('no two keys share the name of a variable', () => {
    const names = [...settableKeys(fleetShape).keys()].map(variableName)

    expect(names).toContain('FLEET_HEALTH_BREAKER_RETRY_MAX')
    expect(new Set(names).size).toBe(names.length)
  })

  test('every key has a line of its own in the overview, defaults included', () => {
    const shown = loadToml('').values.map(({ key }) => key)

    expect(shown).toEqual(['version', ...settableKeys(fleetShape).keys()])
  })

  test('FLEET_NODES replaces the whole list', () => {
    const file = '[[nodes]]\nname = "a"\nkind = "ollama"\nurl = "http://10.0.0.1:1"'
    const FLEET_NODES = '[{"name":"b","kind":"openai","url":"http://10.0.0.2:8000/v1","max_concurrency":8}]'

    const loaded = loadToml(file, { env: { FLEET_NODES } })

    expect(loaded.config?.nodes).toEqual([
      {
        name: 'b',
        kind: 'openai',
        url: 'http://10.0.0.2:8000',
        origin: 'configured',
        maxConcurrency: 8,
        tags: [],
        distance: 0,
      },
    ])
    expect(shownFor('nodes[0].name', loaded)?.origin).toBe('env FLEET_NODES')
  })

  test('FLEET_NODES that is not a JSON list is an error that does not repeat it', () => {
    const { problems } = loadToml('', { env: { FLEET_NODES: '[{"key":"sk-secret"' } })

    expect(problems).toMatchObject([{ code: 'wrong_type', path: 'nodes', file: 'env FLEET_NODES' }])
    expect(JSON.stringify(problems)).not.toContain('sk-secret')
  })

  test('variables that other parts read, and those that a key names, are not unknown', () => {
    const file = '[auth]\nmode = "keys"\n[[auth.keys]]\nname = "a"\nkey_env = "FLEET_KEY_A"'
    const env = {
      FLEET_CONFIG: 'x',
      FLEET_URL: 'x',
      FLEET_KEY: 'x',
      FLEET_KEY_A: 'fleet_abc',
      FLEET_KEY_B: 'y',
      HOME: '/',
    }

    const { problems } = loadToml(file, { env })

    expect(problems.map(({ severity, file: from }) => [severity, from])).toEqual([['warning', 'env FLEET_KEY_B']])
  })

  test('the mode of authentication follows the listener unless it is written', () => {
    const key = `[[auth.keys]]\nname = "a"\nkey_hash = "sha256:${'a'.repeat(64)}"`
    const open = loadToml('')
    const keys = loadToml(`server.listen = ":1"\n${key}`)

    expect(open.config?.auth.mode).toBe('open')
    expect(keys.config?.auth).toEqual({
      mode: 'keys',
      keys: [{ name: 'a', sha256: 'a'.repeat(64), scopes: ['inference'] }],
    })
    expect(shownFor('auth.mode', keys)).toEqual({ key: 'auth.mode', value: 'keys', origin: 'default' })
  })
})

describe('BL-G03: numbers are taken as documented or refused, never replaced by the default', () => {
  const odd = ['-1', '', '5m', '1e3', ' 4 ', '٤', '0x10', '1_000', '+4', 'Infinity', 'NaN', '64.5']
  const numbers = [...settableKeys(fleetShape)].filter(([, shape]) => shape.type === 'integer').map(([path]) => path)

  test.each(numbers)('%s from a variable and from a flag', (path) => {
    for (const text of odd) {
      for (const world of [{ env: { [variableName(path)]: text } }, { flags: { [path]: text } }]) {
        const { config, problems } = loadToml('', world)
        expect(config).toBeUndefined()
        expect(problems).toMatchObject([{ severity: 'error', path }])
        expect(problems[0]?.message).toMatch(/must be a whole number from \d+ to \d+ in plain digits, not /)
      }
    }
  })

  test.each(numbers)('%s from the file', (path) => {
    for (const literal of ['-1', '""', '"5m"', '"1e3"', '" 4 "', '"٤"', '1e3', 'inf', 'nan', 'true', '[4]']) {
      const { config, problems } = loadToml(`${path} = ${literal}`)
      expect(config).toBeUndefined()
      expect(problems).toMatchObject([{ severity: 'error', path, line: 1 }])
    }
  })

  test.each(
    [...settableKeys(fleetShape)]
      .filter(([, shape]) => 'format' in shape && shape.format === 'duration')
      .map(([path]) => path),
  )('%s needs a unit', (path) => {
    for (const text of ['-1', '', '5', '1e3', ' 4s ', '٤s', '5 m', '5M', '-5s', '9999d']) {
      const { config, problems } = loadToml('', { env: { [variableName(path)]: text } })
      expect(config).toBeUndefined()
      expect(problems[0]?.message).toMatch(/must be a duration with a unit \(ms, s, m, h, d\) from /)
    }
    expect(
      loadToml('', { env: { [variableName(path)]: '5s' } }).problems.filter(({ code }) => code !== 'conflict'),
    ).toEqual([])
  })

  test('a plain number from a variable is taken', () => {
    const { config } = loadToml('', { env: { FLEET_LIMITS_CONCURRENT: '4', FLEET_METRICS_ENABLED: 'false' } })

    expect(config?.limits.concurrent).toBe(4)
    expect(config?.metrics.enabled).toBe(false)
  })
})
