import { availability } from './availability'
import { contextFit } from './context-fit'
import { memoryFit } from './memory-fit'
import { queueDepth } from './queue-depth'
import { roleAffinity } from './role-affinity'
import { session } from './session'
import type { Signal } from './signal'
import { wait } from './wait'
import { warmth } from './warmth'

/** The eight signals of policy `warmth`, in the seed's order. */
export const signals: readonly Signal[] = [
  warmth,
  memoryFit,
  queueDepth,
  wait,
  roleAffinity,
  availability,
  contextFit,
  session,
]
