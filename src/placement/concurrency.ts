import type { SlotsBasis } from '../domain/placement'
import type { NodeKind } from '../domain/node'

/** Working memory that one more request is assumed to need, in GB (five-stage pipeline, section 6). */
const GB_PER_SLOT = 2
const MAX_MEMORY_SLOTS = 8

export interface SlotFacts {
  readonly kind: NodeKind
  readonly configured?: number
  readonly reported?: number
  readonly learned?: number
  /** Memory left beside what is resident, in GB. */
  readonly headroomGb?: number
}

/**
 * How many requests one node:model runs at once, and who says so: configuration, then the engine, then what was
 * learned, then memory (floor(headroom / 2 GB), 1 to 8), then 1. An Ollama that reports nothing runs one at a time
 * since 0.9.7, so memory says nothing about it.
 */
export const slotsOf = ({
  kind,
  configured,
  reported,
  learned,
  headroomGb,
}: SlotFacts): { slots: number; basis: SlotsBasis } => {
  if (configured !== undefined) return { slots: configured, basis: 'configured' }
  if (reported !== undefined && reported > 0) return { slots: reported, basis: 'reported' }
  if (learned !== undefined) return { slots: learned, basis: 'learned' }
  if (headroomGb !== undefined && kind !== 'ollama') {
    return { slots: Math.min(MAX_MEMORY_SLOTS, Math.max(1, Math.floor(headroomGb / GB_PER_SLOT))), basis: 'memory' }
  }
  return { slots: 1, basis: 'default' }
}
