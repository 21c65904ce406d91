import { describe, expect, test } from 'bun:test'
import { complaints, loadToml, type World } from './load-toml'

const node = (more: string) => `[[nodes]]\nname = "rig"\nkind = "ollama"\nurl = "http://10.0.0.10:11434"\n${more}`

const says = (text: string, expected: string, world?: World) => expect(complaints(text, world)).toBe(expected)

describe('messages', () => {
  test('an unknown key is underlined and the known one suggested', () => {
    says(
      node('max_concurency = 1'),
      `error: unknown key "max_concurency"
  --> fleet.toml:5:1
  |
5 | max_concurency = 1
  | ^^^^^^^^^^^^^^ did you mean "max_concurrency"?

1 error
`,
    )
  })

  test('the margin is as wide as the line number', () => {
    says(
      `${'\n'.repeat(179)}[servr]`,
      `error: unknown key "servr"
  --> fleet.toml:180:2
    |
180 | [servr]
    |  ^^^^^ did you mean "server"?

1 error
`,
    )
  })

  test('an unknown kind of node lists the allowed ones', () => {
    says(
      node('').replace('"ollama"', '"olama"'),
      `error: "olama" is not a kind of node
  --> fleet.toml:3:8
  |
3 | kind = "olama"
  |        ^^^^^^^ did you mean "ollama"?
  = allowed: ollama, lmstudio, llamaswap, llamacpp, vllm, sglang, koboldcpp, mlx, whispercpp, sdcpp, a1111, openai

1 error
`,
    )
  })

  test('two keys that share one environment variable are a warning that names both places', () => {
    const key = (name: string) => `[[auth.keys]]\nname = "${name}"\nkey_env = "FLEET_KEY_LAPTOPS"\n`

    says(
      `[auth]\nmode = "keys"\n${key('a')}${key('b')}`,
      `warning: two keys share one environment variable, FLEET_KEY_LAPTOPS
  --> fleet.toml:5:11, fleet.toml:8:11

1 warning
`,
      { env: { FLEET_KEY_LAPTOPS: 'fleet_0123456789' } },
    )
  })

  test('nodes with one name are an error at both places', () => {
    says(
      `${node('')}\n${node('').replace('0.10:', '0.11:')}`,
      `error: two nodes are named "rig"
  --> fleet.toml:2:8, fleet.toml:7:8

1 error
`,
    )
  })

  test('nodes with one server are a warning, whatever the loopback is called', () => {
    const two = (first: string, second: string) =>
      `[[nodes]]\nname = "a"\nkind = "ollama"\nurl = "${first}"\n[[nodes]]\nname = "b"\nkind = "ollama"\nbase_url = "${second}"`

    says(
      two('http://localhost:11434', 'http://127.0.0.1:11434/v1/'),
      `warning: nodes "a" and "b" are the same server, http://localhost:11434
  --> fleet.toml:4:7, fleet.toml:8:12

1 warning
`,
    )
  })

  test('a node that is this router itself is an error', () => {
    says(
      node('').replace('10.0.0.10:11434', '127.0.0.1:11435'),
      `error: node "rig" is this router's own address
  --> fleet.toml:4:7
  |
4 | url = "http://127.0.0.1:11435"
  |       ^^^^^^^^^^^^^^^^^^^^^^^^

1 error
`,
    )
  })

  test('a listener beyond loopback without any key says what to set', () => {
    says(
      '[server]\nlisten = "0.0.0.0:11435"',
      `error: server.listen 0.0.0.0:11435 is reachable from other machines, but no key is configured
  --> fleet.toml:2:10
  |
2 | listen = "0.0.0.0:11435"
  |          ^^^^^^^^^^^^^^^
  = add a key: \`fleet keys add NAME\` prints the lines to paste
  = or listen on this machine only: server.listen = "127.0.0.1:11435"

1 error
`,
    )
  })

  test('a listener beyond loopback with auth.mode "open" is refused even with keys', () => {
    says(
      `[server]\nlisten = ":80"\n[auth]\nmode = "open"\n[[auth.keys]]\nname = "a"\nkey_hash = "sha256:${'0'.repeat(64)}"`,
      `error: auth.mode is "open", but server.listen 0.0.0.0:80 is reachable from other machines
  --> fleet.toml:4:8
  |
4 | mode = "open"
  |        ^^^^^^
  = set auth.mode = "keys"
  = add a key: \`fleet keys add NAME\` prints the lines to paste
  = or listen on this machine only: server.listen = "127.0.0.1:11435"

1 error
`,
    )
  })

  test('auth.mode "keys" without keys is an error on loopback too', () => {
    says(
      '[auth]\nmode = "keys"',
      `error: auth.mode is "keys", but no key is configured
  --> fleet.toml:2:8
  |
2 | mode = "keys"
  |        ^^^^^^
  = add a key: \`fleet keys add NAME\` prints the lines to paste

1 error
`,
    )
  })

  test('sections and keys of later versions are named as such', () => {
    const text = '[lending]\nenabled = true\n[[links]]\nowner = "a"\n[server]\npublic_url = "10s"'

    const { problems } = loadToml(text)

    expect(problems.map(({ code, message }) => [code, message])).toEqual([
      ['not_in_this_version', '[lending] is not in this version of fleet'],
      ['not_in_this_version', '[[links]] is not in this version of fleet'],
      ['not_in_this_version', 'server.public_url is not in this version of fleet'],
    ])
  })

  test.each([
    [node('').replace('"ollama"', '"agent"'), 'kind "agent" is not in this version'],
    ['[policy]\nuse = "fastest"', 'policy "fastest" is not in this version'],
    ['[server]\nloading_notes = "reasoning"', 'kind "reasoning" is not in this version'],
    ['[state]\nbackend = "redis"', 'backend "redis" is not in this version'],
  ])('words of later versions are named as such: %#', (text, message) => {
    expect(loadToml(text).problems.map((problem) => problem.message)).toEqual([message])
  })

  test('an unset variable, an unreadable file and a placeholder are errors', () => {
    const text = `[auth]
mode = "keys"
[[auth.keys]]
name = "a"
key_env = "FLEET_KEY_A"
[[auth.keys]]
name = "b"
key_file = "b.key"
[[auth.keys]]
name = "c"
key_env = "FLEET_KEY_C"
`

    says(
      text,
      `error: environment variable FLEET_KEY_A is not set
  --> fleet.toml:5:11
  |
5 | key_env = "FLEET_KEY_A"
  |           ^^^^^^^^^^^^^

error: cannot read the key file b.key
  --> fleet.toml:8:12
  |
8 | key_file = "b.key"
  |            ^^^^^^^

error: FLEET_KEY_C holds a placeholder, not a key
  --> fleet.toml:11:11
   |
11 | key_env = "FLEET_KEY_C"
   |           ^^^^^^^^^^^^^

3 errors
`,
      { env: { FLEET_KEY_C: 'changeme' } },
    )
  })

  test('a problem of a variable names the variable', () => {
    says(
      '',
      `error: server.listen must be an address and a port, such as "127.0.0.1:11435", ":11435" or "[::1]:11435", not "11435"
  --> env FLEET_SERVER_LISTEN

warning: FLEET_SERVER_LISTN is not a variable of fleet and sets nothing
  --> env FLEET_SERVER_LISTN
  = did you mean "FLEET_SERVER_LISTEN"?

1 error, 1 warning
`,
      { env: { FLEET_SERVER_LISTEN: '11435', FLEET_SERVER_LISTN: ':1' } },
    )
  })

  test('a secret that was written into the file is refused and not shown', () => {
    const text = node('key = "sk-very-secret"').replace('http://', 'http://me:hunter2@')

    const shown = complaints(text)

    expect(shown).toContain('"key" would put a secret into the file')
    expect(shown).toContain('must not contain a user or password; use key_env')
    expect(shown).not.toContain('very-secret')
    expect(shown).not.toContain('hunter2')
    expect(JSON.stringify(loadToml(text))).not.toMatch(/very-secret|hunter2/)
  })

  test.each([
    'key = sk-very-secret',
    "api_key = 'sk-very-secret'",
    'key_env = "sk-very-secret"',
    'key_hash = sk-very-secret',
  ])('a secret is not shown: %s', (line) => {
    const text = `[[auth.keys]]\nname = "a"\n${line}`

    expect(complaints(text)).toMatch(/^error: /)
    expect(complaints(text)).not.toContain('very-secret')
    expect(JSON.stringify(loadToml(text))).not.toContain('very-secret')
  })

  test('all problems are reported at once, in the order of the file', () => {
    const text = `version = 2
[server]
max_body_mb = "64"
[policy]
hold_timeout = 30
[log]
levle = "info"
`
    const { config, problems } = loadToml(text)

    expect(config).toBeUndefined()
    expect(problems.map(({ line, path, code }) => [line, path, code])).toEqual([
      [1, 'version', 'out_of_range'],
      [3, 'server.max_body_mb', 'wrong_type'],
      [5, 'policy.hold_timeout', 'wrong_type'],
      [7, 'log.levle', 'unknown_key'],
    ])
  })

  test('no problem renders as nothing', () => {
    expect(complaints('')).toBe('')
  })
})
