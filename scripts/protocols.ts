/**
 * `node scripts/run.mjs scripts/protocols.ts` writes docs/protocols.md from the code: every error in every protocol, before
 * the first byte of an answer and after it. Change the error table in src/wire/errors.ts, not the file.
 */
import { join } from 'node:path'
import type { ErrorCode } from '../src/domain/errors'
import { RouterError } from '../src/domain/errors'
import type { DialectName } from '../src/domain/job'
import { dialects } from '../src/wire'
import type { InferenceRoute } from '../src/wire/dialect'
import { errorBody, errorHeaders, errorStatus } from '../src/wire/errors'
import { nativeJobs } from '../src/wire/native'

/** Who has left reads no error. */
export type ReachingCode = Exclude<ErrorCode, 'client_disconnected'>

/** When each error is met. */
const WHEN: Readonly<Record<ReachingCode, string>> = {
  invalid_request: 'The body is no JSON, or a member is missing or of the wrong type.',
  not_supported: 'No node that has the model can do what was asked.',
  context_too_large: 'The prompt is longer than the widest window of the model in the fleet.',
  unauthorized: 'The key is missing or unknown.',
  forbidden: 'The key may not do this, or the page or host name may not use the router.',
  not_found: 'There is nothing at this path, or no node, request or job of this name.',
  method_not_allowed: 'The path takes another method; `Allow` names it.',
  model_not_found: 'No node ever had the model.',
  response_not_found: '`previous_response_id`: the router keeps no answers.',
  request_too_large: 'The body is larger than `server.max_body_mb`.',
  queue_full: 'Too many requests wait for the model, or the key is at its limit.',
  upstream_rejected: 'The node refused the request; its own status from 400 to 499 is kept, any other is 502.',
  upstream_failed: 'Every node that was tried failed.',
  upstream_timeout: 'A node was silent for longer than its limit; the message names the limit.',
  no_capacity:
    'Some node could serve it, and none can now; or the bodies of all requests have reached `server.max_buffered_mb`.',
  deadline_exceeded: 'The deadline of the request passed.',
  draining: 'The router is about to stop.',
  loop_detected: 'The request has been through this router before.',
  internal: 'A defect of the router; its log says more.',
}

export const CODES = Object.keys(WHEN) as ReachingCode[]

/** One error as clients see it. */
export interface ErrorRow {
  readonly code: ReachingCode
  readonly status: number
  readonly anthropicStatus: number
  readonly type: string
  readonly openaiCode: string | null
  readonly anthropicType: string
  /** Seconds, where the error does not bring its own. */
  readonly retryAfter: string | null
  readonly shouldRetry: string | null
}

const toRow = (code: ReachingCode): ErrorRow => {
  const error = new RouterError(code, '…')
  const openai = errorBody('openai', error).error as { type: string; code: string | null }
  const anthropic = errorBody('anthropic', error).error as { type: string }
  const headers = errorHeaders(error)
  return {
    code,
    status: errorStatus(error),
    anthropicStatus: errorStatus(error, 'anthropic'),
    type: openai.type,
    openaiCode: openai.code,
    anthropicType: anthropic.type,
    retryAfter: headers['retry-after'] ?? null,
    shouldRetry: headers['x-should-retry'] ?? null,
  }
}

/** The error table, one row a code. */
export const errorRows = (): ErrorRow[] => CODES.map(toRow)

const chat = { messages: [{ role: 'user', content: 'hi' }], stream: true }

/** A body that each kind of endpoint takes; the others are of media and fail as OpenAI's do. */
const SAMPLES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': chat,
  '/v1/completions': { prompt: 'hi', stream: true },
  '/v1/responses': { input: 'hi', stream: true },
  '/v1/embeddings': { input: 'hi' },
  '/v1/messages': { ...chat, max_tokens: 8 },
  '/api/chat': chat,
  '/api/generate': { prompt: 'hi' },
  '/api/embed': { input: 'hi' },
  '/api/embeddings': { prompt: 'hi' },
  '/api/v1/jobs': chat,
}

interface Endpoint {
  readonly dialect: DialectName
  readonly route: InferenceRoute
}

const endpoints: readonly Endpoint[] = [
  ...dialects.flatMap(({ name, inference }) => inference.map((route) => ({ dialect: name, route }))),
  { dialect: 'native', route: nativeJobs },
]

/** The bytes that end a stream of this endpoint; undefined where answers come in one piece. */
const inBand = ({ route }: Endpoint, error: RouterError): string | undefined => {
  const exchange = route.decode({
    id: 'req_1',
    at: 0,
    path: route.path,
    headers: new Headers(),
    body: new TextEncoder().encode(JSON.stringify({ model: 'm', ...SAMPLES[route.path] })),
    context: { priority: 'normal', tags: [] },
  })
  return exchange.job.stream ? new TextDecoder().decode(exchange.inBandError(error)).trim() : undefined
}

const orDash = (text: string | null): string => (text === null ? '–' : `\`${text}\``)

const rowLine = (row: ErrorRow): string => {
  const statuses =
    row.status === row.anthropicStatus
      ? `${row.status}`
      : `${row.status}, for Anthropic's clients ${row.anthropicStatus}`
  const cells = [
    `\`${row.code}\``,
    statuses,
    `\`${row.type}\``,
    orDash(row.openaiCode),
    `\`${row.anthropicType}\``,
    row.retryAfter === null ? '–' : `${row.retryAfter} s`,
    row.shouldRetry === null ? '–' : row.shouldRetry,
    WHEN[row.code],
  ]
  return `| ${cells.join(' | ')} |`
}

const fence = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``

const example = new RouterError('upstream_failed', 'Every node failed.', {
  requestId: 'req_1',
  nodes: [{ node: 'box', reason: 'connection reset' }],
  hint: 'See fleet explain req_1.',
})

const endpointText = (endpoint: Endpoint): string => {
  const { dialect, route } = endpoint
  const whole = JSON.stringify(errorBody(dialect, example), null, 2)
  const last = inBand(endpoint, example)
  const then = dialect === 'native' ? ', before the `record`' : ''
  const after =
    last === undefined
      ? 'Its answers come in one piece, so there is no other form.'
      : `In a stream, as the last of it${then}:\n\n${fence('', last)}`
  return `### \`${route.method} ${route.path}\`\n\nBefore the first byte, with the status of the table:\n\n${fence('json', whole)}\n\n${after}`
}

/** Where it is kept, from the top of the repository. */
export const FILE = 'docs/protocols.md'

export const render = (): string =>
  `${[
    '# Errors, by protocol',
    'Made by `scripts/protocols.ts` from the code; change the table there, not this page.',
    "Clients get an error in the form of the protocol that they speak, and beside it the member `fleet` with our own code, the request id, what each node said and the next step. Every answer names the request in `x-request-id` and `request-id`; a client's own `X-Request-Id` comes back as `X-Client-Request-Id`.",
    '`Retry-After` is the usual value; where the router knows better it says so. `x-should-retry: false` tells SDKs that trying again is useless.',
    '## The table',
    [
      "| error | status | OpenAI's type | OpenAI's code | Anthropic's type | Retry-After | x-should-retry | when |",
      '| --- | --- | --- | --- | --- | --- | --- | --- |',
      ...errorRows().map(rowLine),
    ].join('\n'),
    '## The forms',
    'Once a byte of the answer has reached the client, no status can tell what went wrong, and nothing is tried again: the error is the last record of the stream.',
    ...endpoints.filter(({ route }) => route.path in SAMPLES).map(endpointText),
  ].join('\n\n')}\n`

if (import.meta.main) await Bun.write(join(import.meta.dir, '..', FILE), render())
