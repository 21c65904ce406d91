import type { Policy } from './policy'
import { residency } from './residency'
import { steady } from './steady'
import { warmth } from './warmth'
import { leastConnections, powerOfTwo, random, roundRobin } from './yardsticks'

export const policies: readonly Policy[] = [residency, warmth, steady, roundRobin, leastConnections, powerOfTwo, random]

/** The policy of that name, if there is one. */
export const policyNamed = (name: string): Policy | undefined => policies.find((policy) => policy.name === name)
