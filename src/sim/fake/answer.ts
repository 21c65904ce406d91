import { type Script, type Question, scriptTokens, writeScript } from './question'
import type { Stats, Work } from './work'
import { type Face, sendError, sendJson, type Turn } from './turn'

/** One piece of the largest answers, in bytes. */
const HUGE_PIECE = 16 * 1024

/** How an API writes an answer. `finish`: why it ended. */
export interface Format {
  readonly streamType: string
  /** What comes before the first piece. */
  opening(): string[]
  piece(kind: 'thinking' | 'text', words: string): string
  calls(script: Script): string[]
  closing(script: Script, stats: Stats): string[]
  whole(script: Script, stats: Stats): unknown
}

export interface Ask {
  readonly question: Question
  readonly stream: boolean
  readonly format: Format
  readonly contextTokens?: number
  readonly keepAliveMs?: number
  /** Writes the errors. */
  readonly face: Pick<Face, 'errorBody'>
}

/** The events for the tokens `from` up to `to`; calls come whole with their last token. */
const eventsFor = (script: Script, format: Format, from: number, to: number): string[] => {
  const thoughts = script.thinking.length
  const events: string[] = []
  for (let index = from; index < to; index += 1) {
    const thought = script.thinking[index]
    const word = script.words[index - thoughts]
    if (thought !== undefined) events.push(format.piece('thinking', thought))
    else if (word !== undefined) events.push(format.piece('text', word))
  }
  return to === scriptTokens(script) ? [...events, ...format.calls(script)] : events
}

/** An answer as large as asked, as fast as the client reads, in the format's own framing. */
const sendHuge = (turn: Turn, format: Format, megabytes: number): void => {
  const { reply } = turn
  const piece = format.piece('text', 'x'.repeat(HUGE_PIECE))
  let left = Math.ceil((megabytes * 1e6) / HUGE_PIECE)
  const more = (): void => {
    while (left > 0 && !reply.closed) {
      left -= 1
      if (!reply.write([piece])) return
    }
    reply.end()
  }
  reply.begin(200, { 'content-type': format.streamType })
  reply.write(format.opening())
  reply.onDrain(more)
  more()
}

/** What a request wants of the engine besides text. */
export type Demand = Pick<Work, 'model' | 'contextTokens' | 'keepAliveMs' | 'promptTokens'>

/** Work that makes no text: a load, embeddings. `done` answers, and so does the face when it fails. */
export const serveSilently = (turn: Turn, face: Pick<Face, 'errorBody'>, demand: Demand, done: () => void): void => {
  const handle = turn.machine.engine.submit({
    ...demand,
    tokens: 0,
    event: turn.event,
    produced: () => true,
    done,
    failed: (message) => sendError(turn, face, 500, message),
    cut: () => turn.reply.reset(),
  })
  turn.reply.onClose(handle.cancel)
}

/** Puts the question to the engine and writes what comes. */
export const answer = (turn: Turn, ask: Ask) => {
  const { reply, machine } = turn
  const { format, stream } = ask
  const huge = turn.fault('huge')
  if (huge) return sendHuge(turn, format, huge.megabytes)

  const script = writeScript(ask.question, machine.script)
  let begun = false
  const begin = (): void => {
    if (begun) return
    begun = true
    reply.begin(200, { 'content-type': format.streamType })
    reply.write(format.opening())
  }

  const work: Work = {
    model: ask.question.model,
    ...(ask.contextTokens === undefined ? {} : { contextTokens: ask.contextTokens }),
    ...(ask.keepAliveMs === undefined ? {} : { keepAliveMs: ask.keepAliveMs }),
    promptTokens: script.promptTokens,
    tokens: scriptTokens(script),
    event: turn.event,
    produced(from, to) {
      if (!stream) return true
      begin()
      return reply.write(eventsFor(script, format, from, to))
    },
    done(stats) {
      if (!stream) return sendJson(turn, format.whole(script, stats))
      reply.write(format.closing(script, stats))
      reply.end()
    },
    failed: (message) => sendError(turn, ask.face, 500, message),
    cut: () => reply.reset(),
  }

  const handle = machine.engine.submit(work)
  reply.onDrain(handle.resume)
  reply.onClose(handle.cancel)
}
