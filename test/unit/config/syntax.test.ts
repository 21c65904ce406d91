import { describe, expect, test } from 'bun:test'
import { complaints, loadToml } from './load-toml'

const syntaxErrors = (text: string) =>
  loadToml(text)
    .problems.filter(({ code }) => code === 'syntax')
    .map(({ line, column, message }) => `${line}:${column} ${message}`)

describe('syntax errors', () => {
  test('text without quotes is underlined and quoted in the suggestion', () => {
    expect(complaints('[server]\nlisten = 0.0.0.0:80 # everywhere\n')).toBe(`error: text must stand in quotes
  --> fleet.toml:2:10
  |
2 | listen = 0.0.0.0:80 # everywhere
  |          ^^^^^^^^^^ did you mean "0.0.0.0:80"?

1 error
`)
  })

  test.each([
    ['a = \nversion = 1', ['1:5 a value is missing after =']],
    ['version = 1\nversion = 1', ['2:1 "version" is defined twice']],
    ['[log]\n[server]\n[log]', ['3:2 "log" is defined twice']],
    ['[log\nlevel = "info"', ['1:5 the closing ] is missing']],
    ['a = [1,\n  2\nversion = 1', ['2:4 the closing ] of the list is missing']],
    ['a = "x', ['1:7 the closing quote is missing']],
    ['version', ['1:8 an equals sign is missing']],
  ])('%j', (text, expected) => {
    expect(syntaxErrors(text)).toEqual(expected)
  })

  test('several are reported at once, with the other problems of the lines that could be read', () => {
    const text = `[server]
listen = :80
max_body_mb = -1
[policy
retries = 3
[log]
level = "loud"
format = 'json
`
    const found = loadToml(text).problems.map(({ line, code }) => `${line} ${code}`)

    expect(found).toEqual(['2 syntax', '3 out_of_range', '4 syntax', '7 unknown_value', '8 syntax'])
  })

  test('keys below a broken header are not taken for keys of the table before', () => {
    expect(loadToml('[log]\nlevel = "info"\n[[nodes]\nname = "a"\n').problems.map(({ code }) => code)).toEqual([
      'syntax',
    ])
  })

  test('what is not TOML at all ends after a bounded number of errors', () => {
    const { problems } = loadToml('server:\n  listen: x\n'.repeat(200))

    expect(problems.length).toBeGreaterThan(0)
    expect(problems.length).toBeLessThanOrEqual(20)
  })

  test('a string without end over a long file is one error, at its start', () => {
    const text = `version = 1\nnote = """\n${'retries = 3\n'.repeat(3000)}`

    expect(syntaxErrors(text)).toEqual(['2:11 the closing quote is missing'])
  })

  test('a byte order mark and Windows line ends are no errors', () => {
    const { config, problems } = loadToml('\uFEFF[policy]\r\nretries = 5\r\n')

    expect(problems).toEqual([])
    expect(config?.policy.retries).toBe(5)
  })
})
