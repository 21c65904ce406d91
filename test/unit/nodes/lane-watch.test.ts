import { expect, test } from 'bun:test'
import type { NodeReport } from '../../../src/domain/node'
import type { NodeAdapter } from '../../../src/nodes/adapter'
import { watchingLanes } from '../../../src/nodes/lane-watch'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from '../../../src/nodes/upstream'
import { nodeAt } from '../../fixtures/nodes/recorded'

const empty: NodeReport = { models: [], resident: [], canLoad: false, canUnload: false }
const node = nodeAt('http://10.0.0.2:8000/base', 'openai')

/** Sends one request after the other, answered with these statuses; then what is reported as down. */
const downAfter = async (path: string, statuses: readonly number[], report = empty): Promise<unknown> => {
  const left = [...statuses]
  const upstream = { send: async () => ({ status: left.shift() }) as UpstreamReply } as unknown as UpstreamClient
  const watched = watchingLanes({ kind: 'openai', report: async () => report } as unknown as NodeAdapter)
  for (const _ of statuses)
    await watched.send?.({ method: 'POST', url: `${node.url}${path}` } as UpstreamSend, upstream)
  return (await watched.report(node, {} as never, new AbortController().signal)).lanesDown
}

test.each([
  ['/v1/images/generations', [501], ['image']],
  ['/v1/images/edits', [500, 502], ['image']],
  ['/v1/audio/speech', [500, 500], ['speech']],
  ['/v1/audio/transcriptions', [501], ['transcription']],
  ['/v1/videos', [500, 504], ['video']],
  ['/v1/images/generations', [500], undefined],
  ['/v1/images/generations', [500, 200, 500], undefined],
  ['/v1/images/generations', [501, 200], undefined],
  ['/v1/images/generations', [503, 503, 429, 400, 404], undefined],
  ['/v1/chat/completions', [500, 500, 501], undefined],
])('%s after %p: %p', async (path, statuses, down) => {
  expect(await downAfter(path, statuses)).toEqual(down)
})

test('what the adapter itself reports as down stays so', async () => {
  expect(await downAfter('/v1/images/generations', [501], { ...empty, lanesDown: ['speech', 'image'] })).toEqual([
    'speech',
    'image',
  ])
})
