import { expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host, testNode } from '../support/host'

const listing = (name: string, digest?: string): NodeReport => ({
  models: [digest === undefined ? { name } : { name, digest }],
  resident: [{ name, state: 'ready', slots: 1 }],
  canLoad: false,
  canUnload: false,
})

const viewsOf = ({ fleet }: ReturnType<typeof host>) =>
  fleet.models().map(({ name, nodes }) => [name, nodes.map(({ node }) => node)])

test('a node that left gives its name free, and its own names are forgotten', async () => {
  const world = host({ a: listing('m', 'h1') })
  await world.ready()
  world.gateway.reports.set('b', listing('m', 'h2'))
  world.fleet.addNode(testNode('b'))
  await world.ready()
  expect(viewsOf(world)).toEqual([
    ['m', ['a']],
    ['m-2', ['b']],
  ])

  world.fleet.removeNode('a')
  world.gateway.reports.set('c', listing('m', 'h3'))
  await world.clock.advance(70_000)
  world.fleet.addNode(testNode('c', { origin: 'discovered' }))
  await world.ready()

  expect(viewsOf(world)).toEqual([
    ['m', ['c']],
    ['m-2', ['b']],
  ])
})

test('two models of one name keep apart what they need, where they run and what is known of them', async () => {
  const world = host({ a: listing('m', 'h1'), b: listing('m', 'h2') })
  await world.ready()
  const second = world.fleet.models().find(({ name }) => name === 'm-2')?.nodes[0]?.node ?? ''

  world.submit({ asked: 'm-2' })
  world.submit({ asked: 'm-2' })
  await world.clock.advance(10)

  expect(world.gateway.running.map(({ call }) => [call.node.name, call.model])).toEqual([[second, 'm']])
  expect(world.fleet.waiters().map(({ model }) => model)).toEqual(['m-2'])
  expect([...world.fleet.shared.queues.keys()]).toEqual([`queue/${second}/m-2`])
  expect(world.fleet.shared.desk.room.sizeOf('m')).toBe(0)
})

test('the chain is found when the job is submitted, and the request keeps it', async () => {
  const aliases = [{ name: 'smart', models: ['x', 'm'], acrossKinds: true }]
  const world = host({ a: listing('m') }, { aliases: aliases as never })
  await world.ready()

  expect(world.fleet.chainOf('SMART')).toEqual(['x', 'm'])
  world.submit({ asked: 'smart', models: ['smart'], fallback: ['y'] })
  await world.clock.advance(10)

  expect(world.of('request.arrived').map(({ job }) => [job.asked, job.models])).toEqual([['smart', ['x', 'm', 'y']]])
  expect(world.of('request.placed').map(({ decision }) => [decision.model, decision.choice])).toEqual([['m', 1]])
})

test('an alias is not counted as a model', async () => {
  const aliases = [{ name: 'smart', models: ['m'], acrossKinds: true }]
  const world = host({ a: listing('m') }, { aliases: aliases as never })
  await world.ready()

  expect(world.fleet.overview().models).toBe(1)
  expect(world.fleet.models().map(({ name, aliasOf }) => [name, aliasOf])).toEqual([
    ['m', undefined],
    ['smart', ['m']],
  ])
})

const swapping: NodeReport = {
  models: [{ name: 'Big-Instruct', aliases: ['swap-big'] }],
  resident: [],
  canLoad: true,
  canUnload: false,
}
const oneModel = { sameModel: [{ id: 'm', names: ['m', 'Big-Instruct'] }] } as never

test('a further name that one node has for a model stands for that model on every node', async () => {
  const world = host({ a: swapping, b: listing('m') }, oneModel)
  await world.ready()

  world.submit({ asked: 'swap-big' })
  await world.clock.advance(10)

  expect(world.fleet.chainOf('swap-big')).toEqual(['m'])
  expect(world.gateway.running.map(({ call }) => [call.node.name, call.model])).toEqual([['b', 'm']])
})

test('a name that is a model of its own on some node stays that model', async () => {
  const world = host({ a: swapping, b: listing('m'), c: listing('swap-big') }, oneModel)
  await world.ready()

  expect(world.fleet.chainOf('swap-big')).toEqual(['swap-big'])
})

test('an alias of a model under one of its further names is listed with the nodes of that model', async () => {
  const aliases = [{ name: 'small', models: ['Big-Instruct'], acrossKinds: true }]
  const world = host({ a: swapping, b: listing('m') }, { ...(oneModel as object), aliases: aliases as never })
  await world.ready()

  expect(
    world.fleet.models().map(({ name, aliasOf, nodes }) => [name, aliasOf, nodes.map(({ node }) => node)]),
  ).toEqual([
    ['m', undefined, ['a', 'b']],
    ['small', ['m'], ['a', 'b']],
  ])
})
