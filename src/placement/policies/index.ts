import { residency } from './residency'
import type { Policy } from './policy'

export const policies: readonly Policy[] = [residency]

/** The policy of that name; the configuration has checked that it exists. */
export const policyNamed = (name: string): Policy => policies.find((policy) => policy.name === name) ?? residency
