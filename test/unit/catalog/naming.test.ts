import { expect, test } from 'bun:test'
import { createIdentities } from '../../../src/catalog/identity'
import { createNaming, namedGateway } from '../../../src/catalog/naming'
import type { NodeReport, ResidentModel, StoredModel } from '../../../src/domain/node'
import type { NodeGateway } from '../../../src/ports/node-gateway'
import { testNode } from '../../support/host'

const reportOf = (models: readonly StoredModel[], resident: readonly string[] = []): NodeReport => ({
  models,
  resident: resident.map((name): ResidentModel => ({ name, state: 'ready', memoryGb: 1 })),
  canLoad: true,
  canUnload: true,
})

const ids: Readonly<Record<string, string>> = { 'org/m-gguf': 'm8', 'm:8b': 'm8' }

const naming = () =>
  createNaming({
    identities: createIdentities({ now: () => 0, isConfigured: () => true }),
    sameModel: (name) => ids[name.toLowerCase()],
  })

test('a report in which every name is as the fleet has it stays the same object', () => {
  const report = reportOf([{ name: 'x', digest: 'h' }, { name: 'y' }], ['x'])

  expect(naming().inward(testNode('a'), report)).toBe(report)
})

test('names of one model become its id, both ways, and the node keeps its own', () => {
  const { inward, local } = naming()

  const seen = inward(testNode('a'), reportOf([{ name: 'Org/M-GGUF' }, { name: 'x' }], ['Org/M-GGUF']))

  expect(seen.models).toEqual([{ name: 'm8', localName: 'Org/M-GGUF', isDeclared: true }, { name: 'x' }])
  expect(seen.resident.map(({ name }) => name)).toEqual(['m8'])
  expect(local('a', 'M8')).toBe('Org/M-GGUF')
  expect(local('a', 'x')).toBe('x')
  expect(local('b', 'm8')).toBe('m8')
})

test('a further name under which a node serves the model counts too', () => {
  const { inward, local } = naming()

  const seen = inward(testNode('a'), reportOf([{ name: 'served', aliases: ['m:8b'] }], ['m:8b']))

  expect(seen.models).toEqual([{ name: 'm8', localName: 'served', isDeclared: true, aliases: ['m:8b'] }])
  expect(seen.resident.map(({ name }) => name)).toEqual(['m8'])
  expect(local('a', 'm8')).toBe('served')
})

test('of two names on one node that are one model, the one in memory is used; it is listed once', () => {
  const { inward, local } = naming()
  const models = [{ name: 'org/m-gguf' }, { name: 'm:8b' }]

  const warm = inward(testNode('a'), reportOf(models, ['m:8b']))

  expect(warm.models.map(({ name }) => name)).toEqual(['m8'])
  expect(warm.resident.map(({ name }) => name)).toEqual(['m8'])
  expect(local('a', 'm8')).toBe('m:8b')

  inward(testNode('a'), reportOf(models))
  expect(local('a', 'm8')).toBe('org/m-gguf')
})

test('other weights under the same name get a number, and the node hears its own name', () => {
  const { inward, local } = naming()
  inward(testNode('a'), reportOf([{ name: 'm:latest', digest: 'h1' }]))

  const other = inward(testNode('b'), reportOf([{ name: 'm:latest', digest: 'h2' }], ['m:latest']))

  expect(other.models).toEqual([{ name: 'm-2', localName: 'm:latest', digest: 'h2' }])
  expect(other.resident.map(({ name }) => name)).toEqual(['m-2'])
  expect(local('b', 'm-2')).toBe('m:latest')
  expect(local('a', 'm')).toBe('m')
})

test('what is simulated takes no name from the real model', () => {
  const { inward } = naming()
  inward(testNode('demo', { origin: 'demo' }), reportOf([{ name: 'm', digest: 'simulated' }]))

  const real = reportOf([{ name: 'm', digest: 'h1' }])

  expect(inward(testNode('a'), real)).toBe(real)
})

test('the gateway speaks to each node in its own names', async () => {
  const heard: unknown[] = []
  const inner: NodeGateway = {
    report: async () => reportOf([{ name: 'm:8b' }, { name: 'x' }]),
    load: async (_node, model, options) => void heard.push(['load', model, options.evicts]),
    unload: async (_node, model) => void heard.push(['unload', model]),
    forward: (call) => {
      heard.push(['forward', call.model])
      return { lastByteAt: 0, bytes: 0, clientStalledSince: 0 }
    },
    cut: (request) => void heard.push(['cut', request]),
  }
  const gateway = namedGateway(inner, naming())
  const node = testNode('a')
  const { signal } = new AbortController()

  const { models } = await gateway.report(node, signal)
  await gateway.load(node, 'x', { evicts: ['m8'] }, signal)
  await gateway.unload(node, 'm8', signal)
  gateway.forward({ request: 'r', attempt: 1, node, model: 'm8' }, {} as never, signal)
  gateway.cut('r', { class: 'reset', message: '', bytes: 0, elapsedMs: 0 })

  expect(models.map(({ name }) => name)).toEqual(['m8', 'x'])
  expect(heard).toEqual([
    ['load', 'x', ['m:8b']],
    ['unload', 'm:8b'],
    ['forward', 'm:8b'],
    ['cut', 'r'],
  ])
})

test('an answer that comes after the node has left changes nothing', async () => {
  const left = new AbortController()
  const kept = naming()
  const inner = { report: async () => reportOf([{ name: 'm', digest: 'h1' }]) } as unknown as NodeGateway
  const late = namedGateway(inner, kept).report(testNode('a'), left.signal)
  left.abort()
  await late

  expect(kept.inward(testNode('b'), reportOf([{ name: 'm', digest: 'h2' }])).models[0]?.name).toBe('m')
})
