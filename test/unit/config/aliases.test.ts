import { describe, expect, test } from 'bun:test'
import { loadToml } from './load-toml'

const problemsOf = (text: string) =>
  loadToml(text).problems.map(({ severity, path, line, message }) => [severity, path, line, message])

describe('[aliases]', () => {
  test('a name, a list and a table', () => {
    const { config, problems } = loadToml(`
      [aliases]
      smart = "org/m"
      fast = ["a", "b"]
      "gpt-*" = { models = ["smart"], across_kinds = false }
      "gpt-4.1" = { models = ["a"] }
    `)

    expect(problems).toEqual([])
    expect(config?.aliases).toEqual([
      { name: 'smart', models: ['org/m'], acrossKinds: true },
      { name: 'fast', models: ['a', 'b'], acrossKinds: true },
      { name: 'gpt-*', models: ['smart'], acrossKinds: false },
      { name: 'gpt-4.1', models: ['a'], acrossKinds: true },
    ])
  })

  test('a variable replaces them all', () => {
    const env = { FLEET_ALIASES: '{"smart": ["a", "b"]}', FLEET_SAME_MODEL: '[{"id": "m", "names": ["n"]}]' }

    const { config, values } = loadToml('[aliases]\nother = "x"', { env })

    expect(config?.aliases).toEqual([{ name: 'smart', models: ['a', 'b'], acrossKinds: true }])
    expect(config?.sameModel).toEqual([{ id: 'm', names: ['n'] }])
    expect(values).toContainEqual({ key: 'aliases.smart', value: ['a', 'b'], origin: 'env FLEET_ALIASES' })
  })

  test.each([
    ['"nonsense"', '[aliases] must be a table'],
    ['[1', 'aliases must be a JSON object here, such as \'{"name": "…"}\''],
  ])('a variable must be a JSON object, not %s', (FLEET_ALIASES, message) => {
    expect(loadToml('', { env: { FLEET_ALIASES } }).problems.map((problem) => problem.message)).toEqual([message])
  })

  test.each([
    ['a = "b"\nb = ["x", "a"]', [['error', 'aliases.a', 2, 'alias "a" leads back to itself: a -> b -> a']]],
    ['a = "A:latest"', [['error', 'aliases.a', 2, 'alias "a" leads back to itself: a -> a']]],
    ['start = "b"\nb = "c"\nc = "b"', [['error', 'aliases.b', 3, 'alias "b" leads back to itself: b -> c -> b']]],
    ['a = ["b", "c"]\nb = "d"\nc = "d"', []],
    ['"a*" = "a"\na = "x"', []],
  ])('circles are told once, with the way round: %#', (aliases, expected) => {
    expect(problemsOf(`[aliases]\n${aliases}`)).toEqual(expected as never)
  })

  test.each([
    ['smart = "a"\nSMART = "b"', 'alias "SMART" can never match, "smart" matches the same names'],
    ['"gpt-*" = "a"\n"GPT-**" = "b"', 'alias "GPT-**" can never match, "gpt-*" matches the same names'],
  ])('what can never match is an error at both places: %#', (aliases, message) => {
    const [problem] = loadToml(`[aliases]\n${aliases}`).problems

    expect(problem).toMatchObject({ severity: 'error', line: 3, message, also: [{ line: 2 }] })
  })

  test.each([
    ['" x*" = "a"', 'alias " x*" can never match the name of a model'],
    ['"" = "a"', 'alias "" can never match the name of a model'],
    ['a = []', 'aliases.a must name at least one model'],
    ['a = ["m", "x*"]', 'aliases.a must name models, and "x*" is a pattern'],
    ['a = 5', 'aliases.a must be text in quotes, not 5'],
    ['a = { across_kinds = true }', 'aliases.a has no "models"'],
    ['a = { models = ["m"], acros_kinds = true }', 'unknown key "acros_kinds"'],
    ['a = ""', 'aliases.a must not be empty'],
  ])('%s is wrong', (aliases, message) => {
    expect(loadToml(`[aliases]\n${aliases}`).problems.map((problem) => [problem.line, problem.message])).toEqual([
      [2, message],
    ])
  })

  test('a model that no node may serve is a warning, where the configuration says which ones there are', () => {
    const node = '[[nodes]]\nname = "a"\nkind = "ollama"\nurl = "http://10.0.0.1:1"\n'
    const alias = '[aliases]\nsmart = ["qwen3:8b", "qwen4:8b"]\n'
    const closed = `${alias}[discovery]\nlocal = false\n${node}models = ["qwen3:8b"]`

    expect(problemsOf(closed)).toEqual([
      ['warning', 'aliases.smart', 2, 'alias "smart" names model "qwen4:8b", which no node may serve'],
    ])
    expect(problemsOf(`${alias}${node}models = ["qwen3:8b"]`)).toEqual([])
    expect(problemsOf(`${alias}[discovery]\nlocal = false\n${node}`)).toEqual([])
  })
})

describe('[[same_model]]', () => {
  const one = (id: string, ...names: string[]) => `[[same_model]]\nid = "${id}"\nnames = ${JSON.stringify(names)}\n`

  test('is read', () => {
    expect(loadToml(one('m', 'Org/M', 'm:8b')).config?.sameModel).toEqual([{ id: 'm', names: ['Org/M', 'm:8b'] }])
  })

  test.each([
    [one('m', 'x') + one('n', 'X:latest'), 6, '"x" is a name of same_model[0] already'],
    [one('m', 'x') + one('x', 'y'), 5, '"x" is a name of same_model[0] already'],
    [one('m'), 3, 'same_model[0].names must hold at least one name'],
    [one('m', 'x*'), 3, 'same_model[0].names must hold names of models, and "x*" is a pattern'],
    [`[aliases]\nM = "a"\n${one('m', 'x')}`, 2, '"M" is an alias and a name of same_model "m"; keep one'],
  ])('%#: what contradicts is an error', (text, line, message) => {
    expect(loadToml(text).problems.map((problem) => [problem.line, problem.message])).toEqual([[line, message]])
  })
})
