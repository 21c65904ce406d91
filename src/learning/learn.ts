import type { Fact } from '../domain/facts'
import { modelKey } from '../domain/job'
import type { Samples } from '../ports/samples'

/** A journal sink that measures: every completed answer is a sample of its node and model. */
export const learnFrom = (samples: Samples): { readonly name: string; hear(fact: Fact): void } => ({
  name: 'samples',
  hear: (fact) => {
    if (fact.type !== 'request.settled' || fact.outcome.end !== 'completed') return
    const { node, model, serviceMs, firstByteMs, tokensIn, tokensOut } = fact.outcome
    // What took no time was answered without the node.
    if (node === undefined || model === undefined || !serviceMs) return
    samples.addService({
      node,
      model: modelKey(model),
      durationMs: serviceMs,
      firstByteMs: firstByteMs ?? serviceMs,
      ...(tokensIn === undefined ? {} : { tokensIn }),
      ...(tokensOut === undefined ? {} : { tokensOut }),
    })
  },
})
