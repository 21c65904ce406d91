import type { DialectName } from '../../src/domain/job'
import type { Json } from './fakes'
import type { Protocol } from './protocols'

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The members of an error that the SDKs of a dialect read. */
const ERRORS: Readonly<Record<DialectName, (body: Json) => boolean>> = {
  openai: ({ error }) => isObject(error) && isText(error.message) && isText(error.type) && 'code' in error,
  ollama: ({ error }) => isText(error),
  anthropic: ({ type, error }) => type === 'error' && isText(error?.type) && isText(error?.message),
  native: ({ error }) => isObject(error) && isText(error.code) && isText(error.message),
}

const hasFleet = ({ fleet }: Json): boolean =>
  isObject(fleet) && isText(fleet.code) && isText(fleet.message) && Array.isArray(fleet.nodes)

/** A body that is an error of the dialect, our own member included. */
export const isErrorOf = (dialect: DialectName, body: Json): boolean =>
  isObject(body) && ERRORS[dialect](body) && hasFleet(body)

/** In a Responses stream the error stands inside of the response that failed. */
export const isErrorRecord = (dialect: DialectName, record: Json): boolean =>
  isErrorOf(dialect, record) || (record?.type === 'response.failed' && isText(record.response?.error?.message))

const eventsOf = (body: string): Json[] =>
  body.split('\n').flatMap((line) => {
    if (line === '' || line.startsWith(':') || line.startsWith('event: ')) return []
    if (!line.startsWith('data: ')) throw new Error(`no line of an event stream: ${line.slice(0, 80)}`)
    const data = line.slice('data: '.length)
    return [data === '[DONE]' ? data : JSON.parse(data)]
  })

const linesOf = (body: string): Json[] =>
  body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** The records of a streamed body; throws where it breaks its framing. */
export const recordsOf = (contentType: string, body: string): Json[] =>
  contentType.startsWith('text/event-stream') ? eventsOf(body) : linesOf(body)

const isStream = (contentType: string): boolean => /^(text\/event-stream|application\/x-ndjson)/.test(contentType)

const oddStream = ({ dialect, isEnd }: Protocol, contentType: string, body: string): string | undefined => {
  const records = recordsOf(contentType, body)
  const failed = records.some((record) => isErrorRecord(dialect, record))
  if (failed || records.some(isEnd)) return undefined
  return records.length === 0 ? 'a stream without a record' : 'a stream without its end and without an error'
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

const isJson = ({ headers }: Answered): boolean => headers.get('content-type')?.startsWith('application/json') ?? false

/** What no answer may be, whatever a node said: one without an id, or a defect of the router. */
export const defectOf = (answer: Answered): string | undefined => {
  if (!isText(answer.headers.get('x-request-id'))) return 'no x-request-id'
  if (answer.status === 500) return 'an error of the router itself'
  return answer.status !== 200 && !isJson(answer) ? 'an error that is no JSON' : undefined
}

/** Why it is no answer of the protocol; undefined when it is one. */
export const oddOf = (protocol: Protocol, answer: Answered): string | undefined => {
  const { status, headers, body } = answer
  const contentType = headers.get('content-type') ?? ''
  const defect = defectOf(answer)
  if (defect !== undefined) return defect
  try {
    if (status === 200 && isStream(contentType)) return oddStream(protocol, contentType, body)
    if (!isJson(answer)) return `content type ${contentType}`
    const json = JSON.parse(body)
    if (status === 200) return protocol.isWhole(json) ? undefined : 'an answer without its members'
    if (!isErrorOf(protocol.dialect, json)) return 'an error in another form'
    return json.fleet.code === 'internal' ? 'an error of the router itself' : undefined
  } catch (error) {
    return String(error)
  }
}
