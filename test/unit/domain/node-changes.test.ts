import { expect, test } from 'bun:test'
import type { NodeDescription } from '../../../src/domain/node'
import { nodeChanges } from '../../../src/domain/node-changes'

const node = (name: string, more: Partial<NodeDescription> = {}): NodeDescription => ({
  name,
  kind: 'ollama',
  url: `http://${name}:1`,
  origin: 'configured',
  tags: [],
  distance: 0,
  ...more,
})

const none = { added: [], removed: [], updated: [], replaced: [] }

test('nothing differs, whatever the order of nodes and of their keys', () => {
  const { origin, url, ...rest } = node('a', { maxConcurrency: 2 })

  expect(nodeChanges([node('a', { maxConcurrency: 2 }), node('b')], [node('b'), { url, origin, ...rest }])).toEqual(
    none,
  )
})

test('a node is added, one goes, one has other settings, one is another server', () => {
  const before = [node('gone'), node('other'), node('moved'), node('same')]
  const other = node('other', { tags: ['gpu'] })
  const moved = node('moved', { url: 'http://else:1' })

  expect(nodeChanges(before, [node('new'), other, moved, node('same')])).toEqual({
    added: [node('new')],
    removed: ['gone'],
    updated: [other],
    replaced: [moved],
  })
})

test('another kind is another server, another spelling of the loopback is not', () => {
  const before = [node('a'), node('b', { url: 'http://127.0.0.1:2' })]
  const a = node('a', { kind: 'openai' })
  const b = node('b', { url: 'http://localhost:2' })

  expect(nodeChanges(before, [a, b])).toEqual({ ...none, replaced: [a], updated: [b] })
})

test('found nodes stay unless the configuration claims their name or their server', () => {
  const found = (name: string, url: string) => node(name, { origin: 'discovered', url })
  const before = [
    found('ollama', 'http://127.0.0.1:1'),
    found('x', 'http://127.0.0.1:2'),
    found('y', 'http://127.0.0.1:3'),
  ]
  const claimed = node('ollama', { url: 'http://127.0.0.1:1' })

  expect(nodeChanges(before, [claimed, node('mine', { url: 'http://localhost:2' })])).toEqual({
    added: [node('mine', { url: 'http://localhost:2' })],
    removed: ['x'],
    updated: [claimed],
    replaced: [],
  })
})
