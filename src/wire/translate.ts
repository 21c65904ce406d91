import type { ReplyEvent } from './canonical'
import { concat, decode, encode } from './bytes'
import type { ReplyTransform, Usage } from './exchange'
import { parseReply } from './json/values'
import type { Framer } from './lines'
import { createEventRepairer } from './repair/events'
import type { Repair } from './repair/repair'
import type { FrameReader, ReplyWriter } from './replies'
import { errorOf } from './replies'
import { createThinkSplitter } from './think-tags'

export interface Translation {
  readonly contentType: string
  readonly framer: Framer
  readonly reader: FrameReader
  readonly writer: ReplyWriter
  /** The client's form of an error inside an answer. */
  readonly errorText: (message: string) => string
  /** `<think>` in the text is text like any other. */
  readonly keepsTags?: boolean
  /** Calls of tools are to be repaired. */
  readonly repair?: Repair | undefined
}

/** Enough of an answer that never began to find an error object in it. */
const headBytes = 4_096

/** From one dialect to another: frames, canonical events, the client's bytes. */
export const translate = (translation: Translation): ReplyTransform => {
  const { contentType, framer, reader, writer, errorText, keepsTags = false, repair } = translation
  const split = keepsTags ? (event: ReplyEvent) => [event] : createThinkSplitter()
  const repaired = repair && createEventRepairer(repair)
  const refine = repaired ? (event: ReplyEvent) => split(event).flatMap(repaired) : split
  let head: Uint8Array[] | undefined = []
  let headLength = 0
  let begun = false
  let finished = false
  let ended = false
  let problem: ReturnType<ReplyTransform['problem']>
  let usage: Usage = {}
  const seen = { thinking: false, answer: false, length: false }

  const note = (event: ReplyEvent): void => {
    if (event.type === 'usage') {
      const { tokensIn, tokensOut, cachedIn } = event
      usage = {
        ...(tokensIn !== undefined && { tokensIn }),
        ...(tokensOut !== undefined && { tokensOut }),
        ...(cachedIn !== undefined && { cachedIn }),
      }
      return
    }
    if (event.type === 'finish' || event.type === 'done') finished = true
    if (event.type === 'finish') seen.length = event.reason === 'length'
    else if (event.type === 'reasoning') seen.thinking = true
    else if (event.type === 'text' || event.type === 'call') seen.answer = true
    begun = true
    head = undefined
  }

  const close = (): string => {
    if (ended) return ''
    ended = true
    return writer.end()
  }

  const take = (event: ReplyEvent): string => {
    if (ended || problem) return ''
    if (event.type === 'error') {
      problem = { message: event.message, ...(event.status !== undefined && { status: event.status }) }
      return errorText(event.message)
    }
    note(event)
    return event.type === 'done' ? close() : writer.write(event)
  }

  const out = (texts: readonly string[]): Uint8Array | undefined => {
    const text = texts.join('')
    return text === '' ? undefined : encode(text)
  }

  const run = (frames: ReturnType<Framer['push']>): string[] =>
    frames.flatMap((frame) => reader(frame).flatMap(refine)).map(take)

  /** A bare error object where a stream was asked for is no frame of it. */
  const strayError = (): string[] => {
    if (begun || problem || head === undefined) return []
    const error = errorOf(parseReply(decode(concat(head))) ?? {})
    return error ? [take({ type: 'error', ...error })] : []
  }

  return {
    contentType,
    push(chunk) {
      if (head && headLength < headBytes) {
        head.push(chunk)
        headLength += chunk.length
      }
      return out(run(framer.push(chunk)))
    },
    end() {
      const texts = run(framer.end())
      return out([...texts, ...strayError(), ...(finished && !problem ? [close()] : [])])
    },
    complete: () => finished && problem === undefined,
    problem: () => problem,
    begun: () => begun,
    usage: () => ({
      ...usage,
      ...(seen.length && seen.thinking && !seen.answer && { thinkingExhausted: true as const }),
      ...repair?.usage(),
    }),
  }
}
