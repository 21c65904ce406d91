import type { Reply } from './connection'
import type { Engine } from './engine'
import type { FaultOf, FaultPlan, FaultTarget, FaultType } from './faults'
import type { FakeRequest } from './http-parser'
import type { FakeModel, FakeOptions, LogEvent } from './options'
import type { ScriptOptions } from './question'

/** An engine with what its HTTP face needs to know. */
export interface Machine {
  readonly options: FakeOptions
  readonly models: readonly FakeModel[]
  readonly engine: Engine
  readonly faults: FaultPlan
  readonly slots: number
  readonly script: ScriptOptions
  readonly version: string
  /** Simulated ms to a time of the wall clock, in ms since the epoch. */
  wallTime(simulatedAt: number): number
}

/** One request with everything that its handler may use. */
export interface Turn {
  readonly machine: Machine
  readonly request: FakeRequest
  /** The body as JSON; empty when it is none. */
  readonly json: Readonly<Record<string, unknown>>
  readonly reply: Reply
  readonly target: FaultTarget
  event(event: LogEvent): void
  fault<T extends FaultType>(type: T): FaultOf<T> | undefined
}

/** How one kind of engine answers HTTP. */
export interface Face {
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>
  /** Paths that need no key. */
  readonly open: readonly string[]
  handle(turn: Turn): void
  /** The engine's own error body for that path. */
  errorBody(path: string, status: number, message: string): unknown
}

export const sendJson = (turn: Turn, value: unknown, status = 200): void =>
  turn.reply.send(status, { 'content-type': 'application/json; charset=utf-8' }, JSON.stringify(value))

export const sendError = (turn: Turn, face: Pick<Face, 'errorBody'>, status: number, message: string): void =>
  sendJson(turn, face.errorBody(turn.request.path, status, message), status)

const INFERENCE =
  /^\/(v1\/)?(chat\/completions|completions|embeddings|messages)$|^\/api\/(chat|generate|embed|embeddings)$/

/** What a fault may be matched against, before the request is understood. */
export const targetOf = (request: FakeRequest, json: Readonly<Record<string, unknown>>): FaultTarget => ({
  path: request.path,
  inference: request.method === 'POST' && INFERENCE.test(request.path),
  ...(typeof json.model === 'string' ? { model: json.model } : {}),
})
