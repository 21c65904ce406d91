/** The repair of the calls of one answer, by the tools that the request offers. */
import { decode, encode, find } from '../bytes'
import type { Arrival } from '../dialect'
import type { Usage } from '../exchange'
import type { Json } from '../json/values'
import { isObject } from '../json/values'
import type { BodyFacts } from '../body-facts'
import { repairArguments } from './arguments'

export interface Repair {
  /** The arguments of a call of this tool: repaired where they were broken and could be, else as they are. */
  apply(tool: string, text: string): string
  /** Calls that were repaired. */
  count(): number
  /** What the usage of the answer says of them. */
  usage(): Pick<Usage, 'toolCallsRepaired'>
}

/** Kept back of a translated answer, in characters of arguments. Beyond it the rest of the answer is passed on as it is. */
export const maxHeldLength = 262_144

/** Kept back of an answer that passes through, in bytes: some engines write 300 for three characters of arguments. */
export const maxHeldBytes = 2_097_152

/** Answers that were cut off: their last call is no broken one but a part of one, and must not look whole. */
const cuts: ReadonlySet<unknown> = new Set([
  'length',
  'content_filter',
  'max_tokens',
  'model_context_window_exceeded',
  'refusal',
])

/** Whether an answer that ended for this reason, in any protocol, was cut off. */
export const isCut = (reason: unknown): boolean => cuts.has(reason)

/** `tools` in OpenAI's function form. A tool without a schema takes any object. */
export const createRepair = (tools: readonly Json[]): Repair => {
  const schemas = new Map<string, unknown>()
  for (const tool of tools) {
    const { name, parameters } = isObject(tool.function) ? tool.function : {}
    if (typeof name === 'string') schemas.set(name, parameters ?? true)
  }
  let count = 0
  return {
    apply(tool, text) {
      if (!schemas.has(tool)) return text
      const repaired = repairArguments(text, schemas.get(tool))
      if (repaired === undefined) return text
      count++
      return repaired
    },
    count: () => count,
    usage: () => (count > 0 ? { toolCallsRepaired: count } : {}),
  }
}

/**
 * The tools of a body as the client wrote them, without parsing anything else of it. With `mention` none where that does
 * not stand in them.
 */
export const toolsIn = ({ body, toolsSpan }: BodyFacts, mention?: string): readonly unknown[] => {
  if (toolsSpan === undefined) return []
  const tools = body.subarray(toolsSpan.start, toolsSpan.end)
  if (mention !== undefined && find(tools, encode(mention)) < 0) return []
  try {
    const parsed: unknown = JSON.parse(decode(tools))
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

/** For one answer; undefined where nothing is to be repaired. `read` puts the client's tools in OpenAI's function form. */
export const repairFor = (
  { repairToolCalls }: Pick<Arrival, 'repairToolCalls'>,
  facts: BodyFacts,
  read: (tools: readonly unknown[]) => readonly Json[],
): Repair | undefined => (repairToolCalls && facts.tools > 0 ? createRepair(read(toolsIn(facts))) : undefined)
