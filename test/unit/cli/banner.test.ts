import { describe, expect, test } from 'bun:test'
import { type FirstRun, firstRunText } from '../../../src/cli/banner'
import type { NodeDescription } from '../../../src/domain/node'

const node = (name: string, url: string): NodeDescription => ({
  name,
  kind: 'ollama',
  url,
  origin: 'configured',
  tags: [],
  distance: 0,
})

const textOf = (change: Partial<FirstRun>): string =>
  firstRunText({
    version: '1.3.0',
    url: 'http://127.0.0.1:11435',
    hostname: 'studio',
    program: 'fleet',
    file: undefined,
    found: [],
    configured: [],
    demo: [],
    isForced: false,
    needsKey: false,
    ...change,
  })

describe('the first lines of a router', () => {
  test('name what was found, what is configured, and what only stands in', () => {
    const text = textOf({
      file: 'fleet.toml',
      configured: [node('box', 'http://10.0.0.3:11434')],
      found: [node('ollama', 'http://127.0.0.1:11434')],
    })

    expect(text).toContain('Nodes in fleet.toml\n    + box                  ollama     http://10.0.0.3:11434\n')
    expect(text).toContain('Found on this machine\n    + ollama ')
    expect(text).not.toContain('simulated')
    expect(textOf({ demo: [node('pi', 'http://127.0.0.1:9')] })).toContain('No engine found on this machine: simulated')
    expect(textOf({ demo: [node('pi', 'http://127.0.0.1:9')], isForced: true })).toContain('Demo: simulated nodes')
    expect(textOf({})).toContain('No engine found on this machine yet')
  })

  test('can be pasted: a model that exists in the demo, the address, how the program is called', () => {
    const text = textOf({ demo: [node('pi', 'http://127.0.0.1:9')], program: 'npm run -s fleet --' })

    expect(text).toContain(`curl http://127.0.0.1:11435/v1/chat/completions -H 'content-type: application/json' \\`)
    expect(text).toContain('"model":"qwen3:8b"')
    expect(text).toContain('  Then        npm run -s fleet -- explain last\n')
    expect(textOf({ url: 'http://127.0.0.1:8000' })).toContain('explain last --url http://127.0.0.1:8000\n')
  })

  test('a router for the network tells the address for other machines and where a key goes', () => {
    const text = textOf({ url: 'http://0.0.0.0:11435', needsKey: true })

    expect(text).toContain('Ready       http://127.0.0.1:11435/v1 ')
    expect(text).toContain('Elsewhere   http://studio:11435/v1 ')
    expect(text).toContain("/v1/models -H 'authorization: Bearer KEY'\n")
    expect(text).toContain('explain last --key KEY\n')
    expect(text).not.toContain('Only this machine')
  })

  test('a router on loopback says that nobody else can reach it, with keys or without', () => {
    expect(textOf({})).toContain('Only this machine can reach it.')
    expect(textOf({ needsKey: true })).toContain('Only this machine can reach it.')
    expect(textOf({ url: 'http://10.0.0.5:11435', needsKey: true })).not.toContain('Only this machine')
  })
})
