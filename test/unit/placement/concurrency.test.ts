import { expect, test } from 'bun:test'
import { slotsOf } from '../../../src/placement/concurrency'

test.each([
  ['configured beats all', { kind: 'openai', configured: 3, reported: 8, learned: 2, headroomGb: 40 }, 3, 'configured'],
  ['reported beats learned', { kind: 'llamacpp', reported: 4, learned: 2, headroomGb: 40 }, 4, 'reported'],
  ['learned beats memory', { kind: 'openai', learned: 2, headroomGb: 40 }, 2, 'learned'],
  ['memory: floor(headroom / 2 GB)', { kind: 'openai', headroomGb: 7.9 }, 3, 'memory'],
  ['memory: at least 1', { kind: 'openai', headroomGb: 0 }, 1, 'memory'],
  ['memory: at most 8', { kind: 'openai', headroomGb: 100 }, 8, 'memory'],
  ['an Ollama that reports nothing', { kind: 'ollama', headroomGb: 100 }, 1, 'default'],
  ['nothing known', { kind: 'openai' }, 1, 'default'],
] as const)('slots: %s', (_what, facts, slots, basis) => expect(slotsOf(facts)).toEqual({ slots, basis }))
