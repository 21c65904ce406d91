import { describe, expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host } from '../support/host'

const report = (models: readonly string[], resident: readonly string[], memoryGb = 10): NodeReport => ({
  models: models.map((name) => ({ name, sizeGb: 4 })),
  resident: resident.map((name) => ({ name, state: 'ready', slots: 1, memoryGb: 4 })),
  canLoad: true,
  canUnload: true,
  memoryGb,
})

const chain = (...models: string[]) => ({ asked: models[0] ?? '', models })

const worldOf = async (nodes: Readonly<Record<string, NodeReport>>, policy = 'residency') => {
  const world = host(nodes, { policy: { use: policy } })
  await world.ready()
  return world
}

const where = ({ gateway }: Awaited<ReturnType<typeof worldOf>>) =>
  gateway.running.map(({ call }) => [call.node.name, call.model])
const loads = ({ gateway }: Awaited<ReturnType<typeof worldOf>>) =>
  gateway.loads.map(({ node, model, options }) => [node, model, options.evicts])

for (const policy of ['residency', 'warmth', 'steady']) {
  describe(`the fallback chain under ${policy}`, () => {
    test('what is in memory goes before what would have to be loaded, in the order of the chain', async () => {
      const world = await worldOf({ a: report(['one', 'two', 'three'], ['two', 'three'], 30) }, policy)

      world.submit(chain('one', 'two', 'three'))
      await world.clock.advance(10)

      expect(where(world)).toEqual([['a', 'two']])
      expect(loads(world)).toEqual([])
    })

    test('when nothing is in memory the first that some node can load is loaded', async () => {
      const world = await worldOf({ a: report(['three'], []), b: report(['two', 'three'], []) }, policy)

      world.submit(chain('one', 'two', 'three'))
      await world.clock.advance(10)

      if (policy === 'residency') expect(loads(world)).toEqual([['b', 'two', []]])
      const [placed] = world.of('request.placed')
      expect(placed?.decision).toMatchObject({ node: 'b', model: 'two', choice: 1 })
    })

    test('a request that nothing can serve now is held for the whole chain', async () => {
      const world = await worldOf({ a: report(['one', 'two'], ['one']), b: report(['two'], ['two']) }, policy)
      for (const name of ['a', 'b']) world.fleet.setAdmission(name, 'paused')

      world.submit(chain('one', 'two'))
      await world.clock.advance(5_000)
      expect(world.fleet.overview().held).toBe(1)
      world.fleet.setAdmission('b', 'open')
      await world.clock.advance(2_000)

      expect(where(world)).toEqual([['b', 'two']])
    })
  })
}

describe('residency', () => {
  test('waits for a busy first model rather than load its stand-in', async () => {
    const world = await worldOf({ a: report(['one'], ['one']), b: report(['two'], []) })
    world.submit({ asked: 'one' })
    await world.clock.advance(10)

    world.submit(chain('one', 'two'))
    await world.clock.advance(1_000)

    expect(loads(world)).toEqual([])
    expect(world.fleet.waiters()).toMatchObject([{ model: 'one', kind: 'waiting', node: 'a' }])
    const passed = world
      .of('request.placed')
      .at(-1)
      ?.verdicts.find(({ node }) => node === 'b')
    expect(passed).toMatchObject({ verdict: 'ranked', terms: { tier: 'passed_over' } })
  })

  test('a stand-in that is in memory and free goes before waiting for the first', async () => {
    const world = await worldOf({ a: report(['one'], ['one']), b: report(['two'], ['two']) })
    world.submit({ asked: 'one' })
    await world.clock.advance(10)

    world.submit(chain('one', 'two'))
    await world.clock.advance(10)

    expect(where(world)).toEqual([
      ['a', 'one'],
      ['b', 'two'],
    ])
  })

  test('another copy of the busy model is loaded as without a chain', async () => {
    const world = await worldOf({ a: report(['one'], ['one']), b: report(['one', 'two'], []) })
    world.submit({ asked: 'one' })
    await world.clock.advance(10)

    world.submit(chain('one', 'two'))
    await world.clock.advance(10)

    expect(loads(world)).toEqual([['b', 'one', []]])
  })

  test('drops an idle model for the first of the chain before it loads the second', async () => {
    const world = await worldOf({ a: report(['one', 'x'], ['x'], 5), b: report(['two'], []) })

    world.submit(chain('one', 'two'))
    await world.clock.advance(10)

    expect(loads(world)).toEqual([['a', 'one', ['x']]])
  })

  test('a model that fails to load gives way to the next, also on the same node', async () => {
    const world = await worldOf({ a: report(['one', 'two'], []) })
    const { outcome } = world.submit(chain('one', 'two'))
    await world.clock.advance(10)

    world.gateway.loads[0]?.fail('out of memory')
    await world.clock.advance(10)
    world.gateway.loads[1]?.done()
    await world.clock.advance(10)
    world.gateway.running[0]?.start()
    world.gateway.running[0]?.finish()
    await outcome
    await world.clock.advance(10)

    expect(loads(world)).toEqual([
      ['a', 'one', []],
      ['a', 'two', []],
    ])
    expect(world.settled().map(({ outcome: { end, model } }) => [end, model])).toEqual([['completed', 'two']])
    world.expectIdle()
  })
})
