import type { Connection, Reply } from './connection'
import type { FaultOf } from './faults'
import { withReplyFaults } from './faulty-reply'
import type { FakeRequest } from './http-parser'
import type { LoggedRequest } from './options'
import { type Face, type Machine, sendError, sendJson, targetOf, type Turn } from './turn'

const HTML_ERROR = '<html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1></body></html>'
const HTML = { 'content-type': 'text/html; charset=utf-8' }
const JSON_TYPE = { 'content-type': 'application/json' }
const GARBAGE = '\u0001\u0002 this is not HTTP\r\n\r\n'

const parseBody = (request: FakeRequest): unknown => {
  if (request.body.length === 0) return undefined
  const text = Buffer.from(request.body).toString()
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const sendStatus = (turn: Turn, face: Face, fault: FaultOf<'status'>): void => {
  const { status, message = 'the engine failed' } = fault
  turn.event('failed')
  if (fault.body === 'html') turn.reply.send(status, { ...HTML, ...fault.headers }, HTML_ERROR)
  else if (fault.body === 'empty') turn.reply.send(status, { ...fault.headers }, '')
  else {
    const body = JSON.stringify(face.errorBody(turn.request.path, status, message))
    turn.reply.send(status, { ...JSON_TYPE, ...fault.headers }, body)
  }
}

/** Lets the faults happen that come before the engine looks at the request. */
const throughFaults = (turn: Turn, face: Face, next: () => void) => {
  const { reply, machine } = turn
  const freeze = turn.fault('freeze')
  if (freeze) {
    turn.event('frozen')
    return machine.faults.onGone(freeze, next)
  }
  const reset = turn.fault('reset')
  if (reset) return void setTimeout(() => reply.reset(), reset.afterMs ?? 0)
  const status = turn.fault('status')
  if (status) return void setTimeout(() => sendStatus(turn, face, status), status.afterMs ?? 0)
  if (turn.fault('garbage')) return reply.raw(GARBAGE)
  const slow = turn.fault('slow')
  if (slow) return void setTimeout(next, slow.ms)
  next()
}

/** An error as the whole body of a 200; false when no such fault is due. */
const sendBodyError = (turn: Turn): boolean => {
  const fault = turn.machine.faults.peek('body_error', turn.target)
  if (!fault || fault.shape === 'event' || !turn.fault('body_error')) return false
  if (fault.shape === 'html') turn.reply.send(200, HTML, HTML_ERROR)
  else sendJson(turn, { error: fault.message ?? 'the engine failed' })
  return true
}

/** The face's answer. A body whose values are of other types than the face reads is refused, as engines do. */
const handle = (turn: Turn, face: Face): void => {
  try {
    face.handle({ ...turn, reply: withReplyFaults(turn, turn.reply) })
  } catch {
    turn.event('failed')
    sendError(turn, face, 400, 'a member of the body has the wrong type')
  }
}

/** Answers one request: log, faults, key, then the face of the engine. */
export const serveRequest = (
  machine: Machine,
  face: Face,
  log: LoggedRequest[],
  request: FakeRequest,
  reply: Reply,
  connection: Connection,
): void => {
  const { options, faults } = machine
  const body = parseBody(request)
  const json = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const { method, target: path, headers } = request
  const entry: LoggedRequest = { at: Date.now(), method, path, headers, body, events: [] }
  if (options.keepLog ?? true) log.push(entry)

  const target = targetOf(request, json)
  const turn: Turn = {
    machine,
    request,
    json,
    reply,
    target,
    event: (event) => void entry.events.push({ at: Date.now(), event }),
    fault: (type) => faults.take(type, target),
  }
  turn.event('received')
  reply.onClose(() => turn.event('client_closed'))

  if (connection.served > 0 && turn.fault('half_open')) {
    turn.event('swallowed')
    connection.deaf = true
    return
  }
  throughFaults(turn, face, () => {
    if (reply.closed) return
    const isOpen = options.apiKey === undefined || face.open.includes(request.path)
    if (!isOpen && headers.authorization !== `Bearer ${options.apiKey}`) {
      return sendError(turn, face, 401, 'Invalid API Key')
    }
    if (!sendBodyError(turn)) handle(turn, face)
  })
}
