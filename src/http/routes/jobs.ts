import { RouterError } from '../../domain/errors'
import type { DecisionRecord } from '../../domain/record'
import { encode } from '../../wire/bytes'
import { errorResponse } from '../../wire/errors'
import { nativeJobs } from '../../wire/native'
import { event } from '../../wire/native-writer'
import type { ServerDeps } from '../deps'
import { native as refuser } from '../refuser'
import { type Call, type Route, restOf } from '../route'
import type { Serve } from './inference'

const prefix = '/jobs/'

/** The stream with one more event behind its last. */
const followed = (body: ReadableStream<Uint8Array>, last: () => Uint8Array): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        controller.enqueue(done ? last() : value)
        if (done) controller.close()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** Whether a caller may see the record: its own, or any with a key that may read. */
const maySee = ({ caller }: Call, { asked }: DecisionRecord): boolean =>
  caller === undefined ||
  caller.scopes.some((scope) => scope === 'metrics' || scope === 'admin') ||
  asked.key === caller.name

/** Our own way to run a model: the answer ends with the record that says how it came about. */
export const jobRoutes = ({ decisions }: ServerDeps, serve: Serve): Route[] => {
  const withRecord = async (response: Response, id: string): Promise<Response> => {
    const { status, headers, body } = response
    if (isStream(response) && body) {
      return new Response(
        followed(body, () => encode(event('record', { record: decisions.get(id) }))),
        { status, headers },
      )
    }
    const json = (await response.json()) as object
    return Response.json({ ...json, record: decisions.get(id) }, { status, headers })
  }

  const submit = async (call: Call): Promise<Response> => {
    try {
      return await withRecord(await serve(nativeJobs, call), call.id)
    } catch (thrown) {
      const error = RouterError.from(thrown)
      // Before it was a job there is no record, and what went wrong in here is for the log.
      if (error.code === 'internal' || decisions.get(call.id) === undefined) throw thrown
      call.release()
      call.answered()
      return withRecord(errorResponse('native', error.with({ requestId: call.id })), call.id)
    }
  }

  const find = (call: Call): Response => {
    const id = restOf(call.path, prefix)
    const record = decisions.get(id)
    if (record && maySee(call, record)) return Response.json({ id, state: record.outcome?.end ?? 'running', record })
    throw new RouterError('not_found', `There is no job "${id}".`)
  }

  return [
    { method: nativeJobs.method, path: nativeJobs.path, access: 'inference', refuser, patient: true, handle: submit },
    { method: 'GET', path: `${nativeJobs.path}/*`, access: 'own', refuser, handle: find },
  ]
}
