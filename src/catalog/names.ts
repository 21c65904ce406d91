import type { Config } from '../domain/config'
import { type Capability, type Job, modelKey } from '../domain/job'
import { type Alias, createAliases, distinct } from './aliases'

/** What a name stands for. */
export interface Chain {
  /** The models to try, in this order, by the fleet's names; never empty. */
  readonly models: readonly string[]
  readonly acrossKinds: boolean
}

/** What is known of names while the router runs. */
export interface Known {
  /** Some node lists the model. */
  isListed(key: string): boolean
  /** What some node says that the model can do. */
  capabilities(key: string): readonly Capability[]
  /** Today's name of a model that was called otherwise before, or that a node also lists under this one. */
  current(name: string): string
}

/** The names that clients ask for. Made from one configuration; another one makes another. */
export interface Names {
  /** First an alias of that name, then a model that some node lists, then the most specific pattern, else the name itself. */
  chainOf(asked: string): Chain
  /** The job with its whole chain: what its models stand for, then the stand-ins that the client names. */
  resolve(job: Job): Job
  /** One name for all that the configuration says are one model. */
  sameModel(name: string): string | undefined
  /** Aliases that are no patterns; their models by the fleet's names. */
  readonly aliases: readonly Alias[]
}

/** What makes a model of another kind; how it thinks or fills in does not. */
const KINDS: ReadonlySet<Capability> = new Set(['chat', 'completion', 'embedding', 'vision', 'tools', 'audio'])

export const createNames = (
  { aliases = [], sameModel = [] }: Pick<Config, 'aliases' | 'sameModel'>,
  known: Known,
): Names => {
  const { exact, pattern, listed } = createAliases(aliases)
  const one = new Map(sameModel.flatMap(({ id, names }) => [id, ...names].map((name) => [modelKey(name), id] as const)))
  const canonical = (name: string): string => one.get(modelKey(name)) ?? known.current(name)

  const chainOf = (asked: string): Chain => {
    const model = canonical(asked)
    const alias = exact(asked) ?? (known.isListed(modelKey(model)) ? undefined : pattern(asked))
    if (alias === undefined) return { models: [model], acrossKinds: true }
    return { models: distinct(alias.models.map(canonical)), acrossKinds: alias.acrossKinds }
  }

  /** Nearly every name stands for itself, and then there is nothing to make. */
  const isItself = (name: string): boolean =>
    canonical(name) === name &&
    exact(name) === undefined &&
    (known.isListed(modelKey(name)) || pattern(name) === undefined)

  return {
    chainOf,
    resolve: (job) => {
      if (job.models.length === 1 && job.fallback === undefined && isItself(job.models[0] as string)) return job
      const chains = [...job.models, ...(job.fallback ?? [])].map(chainOf)
      const models = distinct(chains.flatMap((chain) => chain.models))
      if (models.length === 1 && job.models.length === 1 && models[0] === job.models[0]) return job
      const [first] = models
      const isStrict = models.length > 1 && first !== undefined && chains.some(({ acrossKinds }) => !acrossKinds)
      if (!isStrict) return { ...job, models }
      return { ...job, models, standInNeeds: known.capabilities(modelKey(first)).filter((one) => KINDS.has(one)) }
    },
    sameModel: (name) => one.get(modelKey(name)),
    get aliases() {
      return listed.map((alias) => ({ ...alias, models: distinct(alias.models.map(canonical)) }))
    },
  }
}
