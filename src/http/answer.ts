import { RouterError, statusOf } from '../domain/errors'
import type { Caller } from './auth'
import type { Buffered } from './buffered'
import { addCors } from './cors'
import { clientRequestId } from './context'
import type { ServerDeps } from './deps'
import { createGuard } from './guard'
import { setHeaders } from './header-values'
import { type Call, pathOf, type Route } from './route'

type Answer = (route: Route, request: Request) => Promise<Response>

/** The cause of an internal error for the log. Parsers quote their input, so their messages stay out. */
const causeOf = ({ cause, message }: RouterError): string => {
  if (!(cause instanceof Error)) return message
  return cause instanceof SyntaxError ? cause.name : `${cause.name}: ${cause.message}`
}

/** What an answer needs of the listener that the request came through. */
export interface Peers {
  isLocal(request: Request): boolean
  hangUp(request: Request): void
  /** Whether the connection may be silent without an end. */
  setPatience(request: Request, isPatient: boolean): void
}

/** One call on one listener. */
class PeerCall implements Call {
  readonly request: Request
  readonly id: string
  readonly at: number
  readonly path: string
  caller?: Caller
  /** There was no room for its body. */
  isTurnedAway = false
  readonly #peers: Peers
  readonly #buffered: Buffered
  #held = 0

  constructor(request: Request, id: string, at: number, peers: Peers, buffered: Buffered) {
    this.request = request
    this.id = id
    this.at = at
    this.path = pathOf(request.url)
    this.#peers = peers
    this.#buffered = buffered
  }

  hold(bytes: number): void {
    // Until it is known that there is room.
    this.isTurnedAway = true
    this.#buffered.take(bytes, this.#held)
    this.isTurnedAway = false
    this.#held += bytes
  }

  release(bytes = this.#held): void {
    this.#held -= bytes
    this.#buffered.give(bytes)
  }

  hangUp(): void {
    this.#peers.hangUp(this.request)
  }

  received(): void {
    this.#peers.setPatience(this.request, true)
  }

  answered(): void {
    this.#peers.setPatience(this.request, false)
  }
}

/** Runs one route for one request: checks first, errors in the client's dialect, our headers on whatever comes out. */
export const createAnswer = (deps: ServerDeps, peers: Peers): Answer => {
  const { config, instance, decisions, replyHeaders, random, clock, log, journal, buffered } = deps
  const guard = createGuard(config, instance)

  /** It is no job yet, so this is all that is ever told of it. */
  const tellTurnedAway = ({ refuser }: Route, { id, at, caller }: Call, { code, message }: RouterError): void => {
    const dialect = refuser.name ?? 'native'
    const status = statusOf(code, dialect)
    journal.record({
      type: 'request.settled',
      at: clock.now(),
      request: id,
      dialect,
      asked: '',
      priority: config.priorities.default,
      ...(caller && { key: caller.name }),
      arrivedAt: at,
      outcome: { end: 'rejected', status, code, message, phase: 'placing', bytes: 0, retries: 0 },
    })
  }

  const refuse = (route: Route, call: PeerCall, thrown: unknown): Response => {
    const error = RouterError.from(thrown)
    if (call.isTurnedAway) tellTurnedAway(route, call, error)
    if (error.code === 'internal')
      log.warn({ request: call.id, path: route.path, cause: causeOf(error) }, 'the router failed on a request')
    return route.refuser.refuse(error.with({ requestId: call.id }), call.request)
  }

  // Whatever goes wrong in telling why, the answer itself stands.
  const tellWhy = (headers: Headers, { id, request }: Call): void => {
    try {
      const record = decisions.get(id)
      if (record) setHeaders(headers, replyHeaders(record, { explain: request.headers.get('x-fleet-explain') === '1' }))
    } catch (error) {
      log.warn({ request: id, cause: causeOf(RouterError.from(error)) }, 'the headers of an answer could not be made')
    }
  }

  const sign = (headers: Headers, route: Route, call: Call): void => {
    // Only what may take its time is placed and has a record.
    if (route.patient) tellWhy(headers, call)
    const clientId = clientRequestId(call.request.headers)
    if (clientId) headers.set('x-client-request-id', clientId)
    headers.set('x-request-id', call.id)
    // The name that Anthropic's clients look for.
    headers.set('request-id', call.id)
    headers.set('x-fleet-instance', instance)
    addCors(call.request, headers)
  }

  return async (route, request) => {
    const call = new PeerCall(request, random.id('req'), clock.now(), peers, buffered)
    let response: Response
    try {
      const caller = guard.check(route, request, peers)
      if (caller) call.caller = caller
      response = await route.handle(call)
      // A patient one is released with the end of its answer.
      if (!route.patient) call.release()
    } catch (thrown) {
      call.release()
      if (route.patient) call.answered()
      response = refuse(route, call, thrown)
    }
    sign(response.headers, route, call)
    return response
  }
}
