import { expect, test } from 'bun:test'
import { candidatesFor } from '../../actors/slates'
import { candidateAt } from '../../actors/view'
import { host, resident, testJob } from '../support/host'

const NAMES = ['a', 'b', 'c']

const three = async () => {
  const core = host({ a: resident('m', 2), b: resident('m', 2), c: resident('m', 2) })
  await core.clock.advance(10)
  const { roster, desk, samples } = core.fleet.shared
  const kept = () => candidatesFor(testJob(), roster, desk.ledger, samples.parallelism)
  /** What is kept from before equals what is made from nothing. */
  const expectFresh = (): void =>
    expect(kept()).toEqual(
      NAMES.flatMap((name) => candidateAt(name, 'm', roster, desk.ledger, samples.parallelism) ?? []),
    )
  return { ...core, expectFresh, kept }
}

test('what nothing touched is the same object at the next decision', async () => {
  const { kept } = await three()

  const [first] = kept()

  expect(kept()[0]).toBe(first)
})

test('a running request, its end, a pause, another report and a node that leaves are all seen at once', async () => {
  const { fleet, gateway, clock, kept, expectFresh } = await three()
  kept()

  const answers = NAMES.map(() => fleet.submit(testJob(), new AbortController().signal))
  expectFresh()
  expect(kept().map(({ inFlight }) => inFlight)).toEqual([1, 1, 1])

  for (const running of [...gateway.running]) {
    running.start()
    running.finish()
  }
  await Promise.all(answers)
  expectFresh()
  expect(kept().map(({ inFlight }) => inFlight)).toEqual([0, 0, 0])

  fleet.setAdmission('b', 'paused')
  expectFresh()
  expect(kept()[1]?.admission).toBe('paused')

  gateway.reports.set('c', resident('m', 7))
  await clock.advance(5_000)
  expectFresh()
  expect(kept()[2]?.slots).toBe(7)

  gateway.reports.set('a', resident('another'))
  await clock.advance(5_000)
  expect(kept().map(({ node }) => node.name)).toEqual(['b', 'c'])

  fleet.removeNode('b')
  expect(kept().map(({ node }) => node.name)).toEqual(['c'])
})
