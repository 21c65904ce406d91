/** Measured service of one node:model. Times in ms; waiting inside the engine is not part of them. */
export interface ServiceSample {
  readonly node: string
  readonly model: string
  /** From the moment the engine took it up until the last byte. */
  readonly durationMs: number
  /** From the same moment until the first byte. */
  readonly firstByteMs: number
  readonly tokensIn?: number
  readonly tokensOut?: number
  /** Reading the prompt; absent where the first byte says nothing of it: a whole answer, or a model that was loaded first. */
  readonly prefillMs?: number
  /** From the first token to the last; absent for an answer that came whole. */
  readonly decodeMs?: number
  /** Requests of the node:model that ran meanwhile, this one included: the mean over its decoding. */
  readonly concurrency?: number
}

export interface ServiceEstimate {
  readonly meanMs: number
  readonly samples: number
}

/** A speed in tokens/s. */
export interface TokenRate {
  readonly perSecond: number
  readonly samples: number
}

export interface NodeMeans {
  /** Total time of a request, in ms. */
  readonly latencyMs?: number
  /** Output tokens/s. */
  readonly tokensPerSecond?: number
}

/** How many requests one node:model really runs at once, and what shows it. Nothing of it is a setting. */
export interface Parallelism {
  /** Learned; absent until there is proof. */
  readonly slots?: number
  /** Requests behind the numbers: the latest that were inside the engine together with others. */
  readonly overlapping: number
  /** The most answers that were being generated at once among them. */
  readonly together: number
  /** Requests among them that got nothing for a long time while so many were being generated. */
  readonly stood: number
  /** One more than is known may be sent now, to see whether it runs. */
  readonly mayTry: boolean
  /** One more than is known is inside now. */
  readonly trying: boolean
}

/** A request as it goes to an engine. `at` in ms since the epoch. */
export interface Sent {
  readonly request: string
  readonly node: string
  readonly model: string
  readonly at: number
  /** Its first token will be seen. */
  readonly streams: boolean
}

/** What is known of a request's time inside the engine once it is over. */
export interface TimeInside {
  /** ms that it stood there before the engine took it up. */
  readonly waitedMs: number
  /** Mean number of requests that ran while it was generated, itself included; absent when no first byte was seen. */
  readonly concurrency?: number
}

/** Follows every request from sending to end; what overlaps shows how many really run at once. */
export interface ParallelismWatch {
  sent(request: Sent): void
  firstByte(request: string, at: number): void
  /** Undefined when it was not heard of. Ending twice does nothing. */
  ended(request: string, at: number): TimeInside | undefined
  of(node: string, model: string): Parallelism | undefined
  /** The learned number alone. */
  slots(node: string, model: string): number | undefined
  /** Counts how often a learned number of the node changed; the same object for ever. */
  mark(node: string): { readonly version: number }
  /** The request, or the next one that is sent beyond the slots, is one more than is known, to see. */
  trying(node: string, model: string, request?: string): void
}

/** Everything learned about one model of a node, with the number of samples behind each figure. */
export interface LearnedModel {
  readonly model: string
  readonly service?: ServiceEstimate & { readonly p75Ms?: number }
  readonly load?: ServiceEstimate
  readonly prefill?: TokenRate
  /** By the number of requests that ran at once. */
  readonly decode: readonly (TokenRate & { readonly concurrency: number })[]
  readonly parallelism?: Parallelism
}

export interface LearnedNode extends NodeMeans {
  /** Requests behind the means. */
  readonly samples: number
  readonly loadGbPerSecond?: number
  readonly models: readonly LearnedModel[]
}

/** Learned from what ran: service times, speeds, load times. Reads are in memory; decisions do no IO. */
export interface Samples {
  addService(sample: ServiceSample): void
  addLoad(node: string, model: string, tookMs: number, sizeGb?: number): void
  /** A prompt of so many bytes of text was so many tokens. */
  addPrompt(model: string, bytes: number, tokens: number): void
  service(node: string, model: string): ServiceEstimate | undefined
  /** 75th percentile of the latest service times of the pair, in ms. */
  p75(node: string, model: string): number | undefined
  /** Prompt tokens/s. */
  prefill(node: string, model: string): TokenRate | undefined
  /** Output tokens/s of one request while so many run (1 to 8); the nearest measured number where that one was not. */
  decode(node: string, model: string, concurrency: number): TokenRate | undefined
  /** Moving averages of the node over all its models. */
  nodeMeans(node: string): NodeMeans | undefined
  /** Mean load time of the model there, else by the node's measured rate and the model's size. */
  loadMs(node: string, model: string, sizeGb?: number): ServiceEstimate | undefined
  /** Bytes of text per token of the model's prompts, where it was measured. */
  bytesPerToken(model: string): number | undefined
  learned(node: string): LearnedNode
  /** Another server stands under this name now. */
  forget(node: string): void
  readonly parallelism: ParallelismWatch
}
