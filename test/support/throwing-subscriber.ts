/** A process of its own for what would end it: a subscriber that throws, whose error XState throws again in a timer. */
import { survive } from '../../src/system'
import { host, resident } from './host'

survive((message) => console.log(`told: ${message}`))
const { fleet, gateway, clock, ready, submit, expectIdle } = host({ a: resident() })
await ready()
fleet.shared.roster.get('a')?.node.subscribe(() => {
  throw new Error('subscriber')
})
fleet.setAdmission('a', 'paused')
await Bun.sleep(5)
fleet.setAdmission('a', 'open')
const { outcome } = submit()
await clock.advance(0)
gateway.running[0]?.start()
gateway.running[0]?.finish()
await clock.advance(0)
console.log(`answered: ${'reply' in (await outcome)}`)
expectIdle()
process.exit(0)
