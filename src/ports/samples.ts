/** Measured service of one node:model. Times in ms. */
export interface ServiceSample {
  readonly node: string
  readonly model: string
  readonly durationMs: number
  readonly firstByteMs: number
  readonly tokensIn?: number
  readonly tokensOut?: number
}

export interface ServiceEstimate {
  readonly meanMs: number
  readonly samples: number
}

export interface NodeMeans {
  /** Total time of a request, in ms. */
  readonly latencyMs?: number
  /** Output tokens/s. */
  readonly tokensPerSecond?: number
}

/** Learned from what ran: service times and load times. Reads are in memory; decisions do no IO. */
export interface Samples {
  addService(sample: ServiceSample): void
  addLoad(node: string, model: string, tookMs: number, sizeGb?: number): void
  service(node: string, model: string): ServiceEstimate | undefined
  /** 75th percentile of the latest service times of the pair, in ms. */
  p75(node: string, model: string): number | undefined
  /** Moving averages of the node over all its models. */
  nodeMeans(node: string): NodeMeans | undefined
  /** Mean load time of the model there, else by the node's measured rate and the model's size. */
  loadMs(node: string, model: string, sizeGb?: number): ServiceEstimate | undefined
}
