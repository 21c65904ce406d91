import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate } from '../../src/domain/placement'
import { type CostConfig, DEFAULT_COST, DEFAULT_SCORE, type ScoreConfig } from '../../src/domain/score'
import type { PolicyContext } from '../../src/placement/policies/policy'
import type { DispatcherContext } from './context'

/** What a policy may ask while it decides: one object for all decisions, told the time at the beginning of each. */
export class PolicyDesk implements PolicyContext {
  now = 0
  readonly random: () => number
  readonly #context: Pick<DispatcherContext, 'samples' | 'config'>

  constructor(context: Pick<DispatcherContext, 'samples' | 'config' | 'random'>) {
    this.#context = context
    this.random = context.random
  }

  at(now: number): this {
    this.now = now
    return this
  }

  get score(): ScoreConfig {
    return this.#context.config.score ?? DEFAULT_SCORE
  }

  get cost(): CostConfig {
    return this.#context.config.cost ?? DEFAULT_COST
  }

  readonly serviceMs = ({ node, model }: Candidate): number | undefined =>
    this.#context.samples.service(node.name, modelKey(model))?.meanMs

  readonly loadMs = ({ node, model, costGb }: Candidate): number | undefined =>
    this.#context.samples.loadMs(node.name, modelKey(model), costGb)?.meanMs

  readonly p75Ms = ({ node, model }: Candidate): number | undefined =>
    this.#context.samples.p75(node.name, modelKey(model))

  readonly nodeMeans: PolicyContext['nodeMeans'] = (node) => this.#context.samples.nodeMeans(node)

  /** Sessions are not kept in this version. */
  readonly sessionNode = (_job: Job): string | undefined => undefined
}
