import { describe, expect, test } from 'bun:test'
import { isLoopbackHost, normalizeBaseUrl, serverKey } from '../../../src/domain/base-url'

describe('base URLs', () => {
  test.each([
    ['http://10.0.0.1:11434', 'http://10.0.0.1:11434'],
    ['http://10.0.0.1:11434/', 'http://10.0.0.1:11434'],
    ['http://10.0.0.1:11434/v1', 'http://10.0.0.1:11434'],
    ['http://10.0.0.1:11434/v1/', 'http://10.0.0.1:11434'],
    ['http://10.0.0.1:11434/api', 'http://10.0.0.1:11434'],
    ['https://h.example/llm/v1', 'https://h.example/llm'],
    ['localhost:1234', 'http://localhost:1234'],
    [' 10.0.0.1:80 ', 'http://10.0.0.1'],
    ['[::1]:8080', 'http://[::1]:8080'],
    ['HTTP://Rig.LAN:1/', 'http://rig.lan:1'],
  ])('%s is %s', (text, url) => {
    expect(normalizeBaseUrl(text)).toEqual({ url })
  })

  test.each([
    '',
    'ftp://h',
    'http://',
    'http://u:p@h',
    'http://h/?a=1',
    'http://h#a',
    'http://0.0.0.0:1',
    'h:0',
    'not a url',
  ])('%j is refused', (text) => {
    expect(normalizeBaseUrl(text)).toEqual({ problem: expect.any(String) })
  })

  test('are the same server under every name of the loopback', () => {
    const keys = ['http://localhost:80', 'http://127.0.0.1', 'http://[::1]/', 'http://127.0.1.1:80/'].map(serverKey)

    expect(new Set(keys).size).toBe(1)
    expect(serverKey('http://10.0.0.1')).not.toBe(serverKey('https://10.0.0.1'))
    expect(serverKey('http://h/a')).not.toBe(serverKey('http://h/b'))
  })

  test('a name that only looks like the loopback is not', () => {
    expect(['127.evil.example', 'localhost.evil', '10.0.0.1', '::'].map(isLoopbackHost)).toEqual([
      false,
      false,
      false,
      false,
    ])
  })
})
