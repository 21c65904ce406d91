import type { Capability, DialectName, Job } from '../domain/job'
import { tokensOf } from '../domain/tokens'
import type { Writable } from '../domain/writable'
import type { Arrival } from './dialect'
import type { BodyFacts } from './body-facts'
import { sessionOf } from './session'

const promptBytesOf = ({ textBytes, toolBytes }: BodyFacts): number => textBytes + toolBytes

/** Tokens of the prompt, by its bytes and pictures. */
export const estimateTokens = (facts: BodyFacts, bytesPerToken?: number): number =>
  tokensOf(promptBytesOf(facts), facts.images, bytesPerToken)

const needsOf = (facts: BodyFacts): Capability[] => {
  const needs: Capability[] = []
  if (facts.images > 0) needs.push('vision')
  if (facts.tools > 0) needs.push('tools')
  if (facts.thinks) needs.push('thinking')
  return needs
}

/** The description of a request that the core routes by. `streams` is what the dialect does when the body is silent. */
export const jobOf = (
  arrival: Arrival,
  facts: BodyFacts,
  kind: { readonly dialect: DialectName; readonly operation: string; readonly streams: boolean },
): Job => {
  const session = arrival.context.session ?? sessionOf(facts)
  const { contextTokens } = facts
  const job: Writable<Job> = {
    ...arrival.context,
    id: arrival.id,
    dialect: kind.dialect,
    operation: kind.operation,
    asked: facts.model,
    models: [facts.model],
    stream: facts.stream ?? kind.streams,
    needs: needsOf(facts),
    promptTokens: { value: estimateTokens(facts), basis: 'estimated' },
    promptBytes: promptBytesOf(facts),
    arrivedAt: arrival.at,
  }
  if (contextTokens !== undefined && contextTokens > 0) job.contextTokens = contextTokens
  if (session !== undefined) job.session = session
  return job
}
