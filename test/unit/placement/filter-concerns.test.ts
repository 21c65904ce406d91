import { expect, test } from 'bun:test'
import type { Job } from '../../../src/domain/job'
import { filters } from '../../../src/placement/filters'
import { candidate, hot, NOW } from '../../support/candidates'
import { testJob, testNode } from '../../support/host'

const candidates = [
  candidate(),
  hot('a', { bound: 99, resident: { name: 'm', state: 'ready', contextTokens: 1 }, canLoad: false }),
  hot('a', { node: testNode('a', { roles: ['embedding'], models: ['x'], tags: ['gpu'] }) }),
  hot('a', { stored: { name: 'm', capabilities: [], maxContextTokens: 1 } }),
  candidate('a', { availableGb: 1, costGb: 2, pressure: 'critical', health: 'offline' }),
  hot('a', { isUnreached: true }),
]
const jobs: Partial<Job>[] = [
  {},
  { needs: [] },
  { pin: '#tpu' },
  { contextTokens: 8_192 },
  { needs: ['vision', 'embedding'] },
]
const contexts = [
  { now: NOW, excluded: new Set<string>() },
  { now: NOW, excluded: new Set(['a']), queueLimit: 0 },
]

test.each(filters.map((filter) => [filter.name, filter] as const))(
  '%s passes every candidate where it says that it is not concerned',
  (_name, filter) => {
    for (const change of jobs)
      for (const context of contexts) {
        const job = testJob(change)
        if (filter.concerns?.(job, context) ?? true) continue
        for (const one of candidates) expect(filter.reject(one, job, context)).toBeUndefined()
      }
  },
)

test('some filters save their look at each candidate of an ordinary request', () => {
  const job = testJob({ needs: [] })
  const context = { now: NOW, excluded: new Set<string>() }

  const unconcerned = filters.filter((filter) => filter.concerns?.(job, context) === false).map(({ name }) => name)

  expect(unconcerned).toContain('pinned_elsewhere')
  expect(unconcerned).toContain('failed_before')
})

test.each(filters.filter(({ ofCandidate }) => ofCandidate).map((filter) => [filter.name, filter] as const))(
  '%s says the same of a candidate whatever the job and the time',
  (_name, filter) => {
    for (const one of candidates) {
      const verdicts = jobs.flatMap((change) =>
        contexts.map((context) => filter.reject(one, testJob(change), { ...context, now: NOW * Math.random() })),
      )
      expect(new Set(verdicts.map((verdict) => JSON.stringify(verdict))).size).toBe(1)
    }
  },
)
