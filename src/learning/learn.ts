import type { Fact, FactOf } from '../domain/facts'
import { type Job, modelKey } from '../domain/job'
import type { Writable } from '../domain/writable'
import type { Samples, ServiceSample, TimeInside } from '../ports/samples'
import { SlotMap } from '../domain/slot-map'

/** A journal sink that measures: it follows every request at its node, and every completed answer is a sample. */
export const learnFrom = (samples: Samples): { readonly name: string; hear(fact: Fact): void } => {
  const jobs = new SlotMap<Job>()

  const settle = (fact: FactOf<'request.settled'>): void => {
    const job = jobs.take(fact.request)
    const inside = samples.parallelism.ended(fact.request, fact.at)
    if (fact.outcome.end === 'completed') measure(samples, fact, job, inside)
  }

  return {
    name: 'samples',
    hear: (fact) => {
      switch (fact.type) {
        case 'request.arrived':
          jobs.set(fact.job.id, fact.job)
          return
        case 'request.phase': {
          const { phase, request, node, model, at } = fact
          if (phase === 'generating') samples.parallelism.firstByte(request, at)
          if (phase !== 'prefill' || node === undefined || model === undefined) return
          const streams = jobs.get(request)?.stream ?? false
          samples.parallelism.sent({ request, node, model: modelKey(model), at, streams })
          return
        }
        case 'attempt.failed':
          samples.parallelism.ended(fact.request, fact.at)
          return
        case 'node.changed':
          if (fact.replaced) samples.forget(fact.node)
          return
        case 'request.settled':
          settle(fact)
      }
    },
  }
}

const measure = (
  samples: Samples,
  { outcome, residency }: FactOf<'request.settled'>,
  job: Job | undefined,
  { waitedMs, concurrency }: TimeInside = { waitedMs: 0 },
): void => {
  const { node, model, serviceMs, tokensIn, tokensOut } = outcome
  // What took no time was answered without the node.
  if (node === undefined || model === undefined || !serviceMs) return
  const firstByteMs = Math.min(serviceMs, outcome.firstByteMs ?? serviceMs)
  const waited = Math.min(waitedMs, firstByteMs)
  // The first byte of an answer that comes whole is its last, and one that follows a load tells of the load.
  const streams = job?.stream === true
  const readsOnly = streams && residency !== 'cold'
  const sample: Writable<ServiceSample> = {
    node,
    model: modelKey(model),
    durationMs: serviceMs - waited,
    firstByteMs: firstByteMs - waited,
  }
  if (tokensIn !== undefined) sample.tokensIn = tokensIn
  if (tokensOut !== undefined) sample.tokensOut = tokensOut
  if (readsOnly) sample.prefillMs = firstByteMs - waited
  if (streams) sample.decodeMs = serviceMs - firstByteMs
  if (concurrency !== undefined) sample.concurrency = concurrency
  samples.addService(sample)
  const hasPictures = job?.needs.includes('vision') ?? true
  if (job?.promptBytes !== undefined && tokensIn !== undefined && !hasPictures)
    samples.addPrompt(askedFor(job) ?? model, job.promptBytes, tokensIn)
}

/** The model as it was asked for, where no other can have answered: prompts are estimated before a node is chosen. */
const askedFor = ({ models }: Job): string | undefined => (models.length === 1 ? models[0] : undefined)
