import type { Job } from '../../src/domain/job'
import type { Candidate } from '../../src/domain/placement'
import { DEFAULT_COST, DEFAULT_SCORE } from '../../src/domain/score'
import type { PolicyContext } from '../../src/placement/policies/policy'
import { testJob, testNode } from './host'

/** A plain idle candidate, cold, on a healthy node. */
export const candidate = (name = 'a', change: Partial<Candidate> = {}): Candidate => ({
  node: testNode(name),
  model: 'm',
  choice: 0,
  stored: { name: 'm' },
  health: 'online',
  admission: 'open',
  breaker: 'closed',
  canLoad: true,
  inFlight: 0,
  bound: 0,
  foreign: 0,
  slots: 1,
  slotsBasis: 'default',
  free: 1,
  nodeInFlight: 0,
  others: [],
  lastChosen: 0,
  ...change,
})

/** The same with the model in memory. */
export const hot = (name = 'a', change: Partial<Candidate> = {}): Candidate =>
  candidate(name, { resident: { name: 'm', state: 'ready' }, ...change })

export const NOW = 1_800_000_000_000

export const context = (change: Partial<PolicyContext> = {}): PolicyContext => ({
  now: NOW,
  serviceMs: () => undefined,
  loadMs: () => undefined,
  p75Ms: () => undefined,
  nodeMeans: () => undefined,
  sessionNode: () => undefined,
  random: () => 0,
  score: DEFAULT_SCORE,
  cost: DEFAULT_COST,
  ...change,
})

export const jobOf = (tokens: number, change: Partial<Job> = {}): Job =>
  testJob({ promptTokens: { value: tokens, basis: 'estimated' }, ...change })
