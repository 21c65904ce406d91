import { expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host } from '../support/host'

/** One server that chats and draws, its image side as given. */
const both = (lanesDown?: NodeReport['lanesDown']): NodeReport => ({
  models: [
    { name: 'chatty', capabilities: ['chat', 'completion'] },
    { name: 'draw', capabilities: ['image'] },
  ],
  resident: [
    { name: 'chatty', state: 'ready' },
    { name: 'draw', state: 'ready' },
  ],
  canLoad: false,
  canUnload: false,
  ...(lanesDown && { lanesDown }),
})
const describe = () => ({ kind: 'koboldcpp' as const })
const picture = { asked: 'draw', models: ['draw'], needs: ['image'] } as const

test('a node whose image side is down still serves text; pictures wait until it is back', async () => {
  const fleet = host({ a: both(['image']) }, { describe })
  await fleet.ready()
  fleet.submit({ asked: 'chatty', models: ['chatty'] })
  fleet.submit(picture)
  await fleet.clock.advance(10)
  expect(fleet.gateway.running.map(({ call }) => call.model)).toEqual(['chatty'])
  expect(fleet.of('request.placed').at(-1)?.verdicts).toMatchObject([{ reason: 'lane_down' }])
  expect(fleet.fleet.nodes()).toMatchObject([{ health: 'online', lanesDown: ['image'] }])

  fleet.gateway.reports.set('a', both())
  await fleet.clock.advance(5_000)
  expect(fleet.gateway.running.map(({ call }) => call.model)).toEqual(['chatty', 'draw'])
})

test('a chat for a model that only draws is refused at once, with what is missing', async () => {
  const fleet = host({ a: both() }, { describe })
  await fleet.ready()
  const { outcome } = fleet.submit({ asked: 'draw', models: ['draw'], needs: [] })
  await fleet.clock.advance(10)
  expect(await outcome).toMatchObject({ error: { code: 'not_supported', message: "'draw' does not support text." } })
})

test('where no node tells that it does what is asked, and no model is named, the answer says both', async () => {
  const { ready, submit } = host({ a: both() }, { describe })
  await ready()

  const { outcome } = submit({ asked: 'music', models: [], anyModel: true, needs: ['music'] })

  expect(await outcome).toMatchObject({
    error: {
      code: 'model_not_found',
      message: 'No model is named, and no node tells that it does music.',
      details: { param: 'model', hint: expect.stringContaining('Name one') },
    },
  })
})

test('a job for any model goes to whichever is free, and no model is a second choice', async () => {
  const whisper = (name: string): NodeReport => ({
    models: [{ name, capabilities: ['transcription'] }],
    resident: [{ name, state: 'ready', slots: 1 }],
    canLoad: false,
    canUnload: false,
  })
  const fleet = host({ a: whisper('large'), b: whisper('small'), c: both() })
  await fleet.ready()
  const any = { asked: 'transcription', models: [], anyModel: true, needs: ['transcription'] } as const
  for (let at = 0; at < 3; at++) fleet.submit(any)
  await fleet.clock.advance(10)
  expect(fleet.gateway.running.map(({ call }) => call.node.name).sort()).toEqual(['a', 'b'])
  expect(fleet.fleet.overview().waiting).toBe(1)
  fleet.gateway.running[1]?.start()
  fleet.gateway.running[1]?.finish()
  await fleet.clock.advance(10)
  expect(fleet.gateway.running.length).toBeGreaterThanOrEqual(2)
})
