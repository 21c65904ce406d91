import type { Fact, FactOf, PhaseName } from '../domain/facts'
import { sameModel } from '../domain/job'
import { allFamilies, type Families } from './families'
import type { LabelLimit } from './label-limit'
import { SlotMap } from '../domain/slot-map'

export interface Labels {
  readonly models: LabelLimit
  /** Values of labels that are closed by convention only: reasons, causes. */
  readonly words: LabelLimit
  /** Whether the caller's key is counted too. */
  readonly perKey: () => boolean
}

export interface FactCounters {
  hear(fact: Fact): void
  /** Sets the gauges of requests that stand somewhere: those that wait and those that are held. */
  setStanding(): void
}

/** What the counters need to remember of a request while it runs. Times in ms since the epoch. */
interface Tracked {
  model: string
  /** The first of its chain. */
  readonly wanted: string
  /** The configuration or a node has that name, not only a client. */
  isKnown: boolean
  /** It was placed for another model of the chain. */
  standsIn: boolean
  readonly priority: string
  phase: PhaseName
  since: number
  node: string
  reason: string
  waitedMs: number
  started: boolean
  /** Attempts that failed and were not followed by another one yet. */
  failed: { readonly node: string; readonly code: string }[]
  /** The attempt that failed last. */
  last?: Pick<FactOf<'attempt.failed'>, 'node' | 'model'>
}

/** Counts facts into the families. */
export const createFactCounters = (families: Families, { models, words, perKey }: Labels): FactCounters => {
  const running = new SlotMap<Tracked>()
  /** Cause of the load that a node:model is in. */
  const loads = new Map<string, string>()

  const arrived = ({ at, job }: FactOf<'request.arrived'>): void => {
    const { id, priority } = job
    const [model = job.asked] = job.models
    if (job.billingHeaderRemoved) families.billingHeaders.add(1)
    running.set(id, {
      model,
      wanted: model,
      isKnown: !sameModel(model, job.asked),
      standsIn: false,
      priority,
      phase: 'placing',
      since: at,
      node: '',
      reason: '',
      waitedMs: 0,
      started: false,
      failed: [],
    })
  }

  const placed = ({ request, policy, decision, tookMs, verdicts }: FactOf<'request.placed'>): void => {
    families.placements.add(1, policy, words.admit(decision.reason))
    families.placementDuration.observe(tookMs / 1000, policy)
    for (const verdict of verdicts) {
      if (verdict.verdict === 'eliminated') families.eliminations.add(1, verdict.node, verdict.reason)
    }
    const tracked = running.get(request)
    if (!tracked) return
    tracked.reason = decision.kind === 'hold' ? lackOf(verdicts) : decision.reason
    if (decision.kind === 'wait' || decision.kind === 'hold') return
    tracked.standsIn = (decision.choice ?? 0) > 0
    if (tracked.standsIn) tracked.isKnown ||= verdicts.some((verdict) => sameModel(verdict.model, tracked.wanted))
  }

  const leavePhase = (tracked: Tracked, at: number, outcome: string): void => {
    const spentMs = at - tracked.since
    if (tracked.phase === 'held') families.holdWait.observe(spentMs / 1000, outcome)
    if (tracked.phase === 'waiting') tracked.waitedMs += spentMs
  }

  const entered = ({ request, at, phase, node, model }: FactOf<'request.phase'>): void => {
    const tracked = running.get(request)
    if (!tracked) return
    leavePhase(tracked, at, 'placed')
    tracked.phase = phase
    tracked.since = at
    tracked.node = node ?? ''
    if (model !== undefined) tracked.model = model
    if (phase !== 'prefill') return
    if (tracked.failed.length > 0)
      for (const { node: failed, code } of tracked.failed.splice(0)) families.retries.add(1, failed, code)
    if (tracked.started) return
    tracked.started = true
    families.queueWait.observe(tracked.waitedMs / 1000, tracked.node, tracked.priority)
  }

  const attemptFailed = ({ request, node, model, failure, retried }: FactOf<'attempt.failed'>): void => {
    const tracked = running.get(request)
    if (!tracked) return
    tracked.last = { node, model }
    if (retried) tracked.failed.push({ node, code: failure.class })
  }

  const settled = ({ request, at, arrivedAt, asked, dialect, outcome, residency }: FactOf<'request.settled'>): void => {
    const { end, tokensIn = 0, tokensOut = 0, ttftMs } = outcome
    // Only what ran makes a model known: clients may ask for anything.
    const tracked = running.take(request)
    const wanted = models.known(tracked?.wanted ?? asked)
    // Once an attempt has failed the request is on no node; what ended it is that node's failure all the same.
    const ran = outcome.node === undefined && end === 'failed' ? tracked?.last : outcome
    const node = ran?.node ?? ''
    const model = node !== '' && ran?.model !== undefined ? models.admit(ran.model) : wanted
    families.requests.add(1, node, model, dialect, end)
    families.latency.observe((at - arrivedAt) / 1000, node, end)
    if (ttftMs !== undefined) families.firstToken.observe(ttftMs / 1000, node, residency ?? '')
    if (outcome.tokensPerSecond) families.perOutputToken.observe(1 / outcome.tokensPerSecond, node)
    if (residency === 'resident') families.residencyHits.add(1, node, model)
    if (residency === 'cold') families.residencyMisses.add(1, node, model)
    if (tokensIn > 0) families.tokens.add(tokensIn, node, model, 'input')
    if (tokensOut > 0) families.tokens.add(tokensOut, node, model, 'output')
    if (outcome.toolCallsRepaired) families.toolCallsRepaired.add(outcome.toolCallsRepaired, node, model)
    if (tracked?.standsIn && ttftMs !== undefined)
      families.fallbacks.add(1, tracked.isKnown ? models.admit(tracked.wanted) : wanted, model)
    if (tracked) leavePhase(tracked, at, end)
  }

  const countKey = ({ key, outcome }: FactOf<'request.settled'>): void => {
    if (key === undefined || !perKey()) return
    const { end, tokensIn = 0, tokensOut = 0, engineMs = 0 } = outcome
    families.keyRequests.add(1, key, end)
    if (tokensIn > 0) families.keyTokens.add(tokensIn, key, 'input')
    if (tokensOut > 0) families.keyTokens.add(tokensOut, key, 'output')
    if (engineMs > 0) families.keyEngineSeconds.add(engineMs / 1000, key)
  }

  const loadEnded = ({ type, node, model, tookMs }: FactOf<'load.finished' | 'load.failed'>): void => {
    const key = loadKey(node, model)
    const cause = loads.get(key) ?? 'unknown'
    loads.delete(key)
    if (type === 'load.finished') families.modelLoad.observe(tookMs / 1000, node, words.admit(cause))
  }

  const hear = (fact: Fact): void => {
    switch (fact.type) {
      case 'request.arrived':
        arrived(fact)
        break
      case 'request.placed':
        placed(fact)
        break
      case 'request.phase':
        entered(fact)
        break
      case 'request.settled':
        settled(fact)
        countKey(fact)
        break
      case 'attempt.failed':
        attemptFailed(fact)
        break
      case 'load.started':
        loads.set(loadKey(fact.node, fact.model), fact.cause)
        break
      case 'load.finished':
      case 'load.failed':
        loadEnded(fact)
        break
      case 'model.evicted':
        families.evictions.add(1, fact.node, models.admit(fact.model), words.admit(fact.by))
        break
      case 'actor.failed':
        if (fact.restarted) families.actorRestarts.add(1, fact.machine)
        break
      case 'config.applied':
        families.configSuccess.set(fact.at / 1000)
        if (fact.cause !== 'start') families.configReloads.add(1, 'applied')
        break
      case 'config.rejected':
        families.configReloads.add(1, 'rejected')
        break
      case 'node.removed':
        for (const family of allFamilies(families)) family.forgetNode(fact.node)
        break
    }
  }

  const setStanding = (): void => {
    families.held.clear()
    for (const { phase, node, model, reason } of running.values()) {
      if (phase === 'waiting') families.waiting.add(1, node, models.known(model))
      if (phase === 'held') families.held.add(1, words.admit(reason))
    }
  }

  return { hear, setStanding }
}

/** What is missing for a request that nothing can serve: what the first node that was ruled out lacks. */
const lackOf = (verdicts: FactOf<'request.placed'>['verdicts']): string => {
  for (const verdict of verdicts) if (verdict.verdict === 'eliminated') return verdict.reason
  return 'model_absent'
}

const loadKey = (node: string, model: string): string => `${node}\0${model}`
