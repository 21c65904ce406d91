import { expect, test } from 'bun:test'
import { type AnyActorRef, createActor } from 'xstate'
import { type Chart, flat } from '../../actors/flat'
import { address } from '../../actors/protocol'
import { indexScheduler, spawn } from '../../actors/spawn'

type Note = { readonly type: 'speak' | 'heard' | 'echo'; readonly n?: number }

const listenerChart = {
  id: 'listener',
  initial: 'on',
  states: { on: { on: { heard: { actions: ['note'] } } } },
} as const satisfies Chart

const speakerChart = {
  id: 'speaker',
  initial: 'on',
  states: { on: { on: { speak: { actions: ['speak', 'more'] }, echo: { actions: ['echo'] } } } },
} as const satisfies Chart

/** A speaker that sends to a listener and to itself; what the listener heard, in order. */
const conversation = () => {
  const heard: (number | undefined)[] = []
  const listener = flat<object, Note, unknown>(listenerChart, {
    context: () => ({}),
    actions: { note: (_context, event) => void heard.push(event.n) },
  })
  const speaker = flat<object, Note, unknown>(speakerChart, {
    context: () => ({}),
    actions: {
      speak: (_context, event, api) => {
        api.send('listener', { type: 'heard', n: event.n })
        api.send(api.self as AnyActorRef, { type: 'echo', n: event.n })
      },
      more: (_context, event, api) => api.send('listener', { type: 'heard', n: (event.n ?? 0) + 1 }),
      echo: (_context, event, api) => api.send('listener', { type: 'heard', n: (event.n ?? 0) + 2 }),
    },
  })
  const root = createActor(speaker, { systemId: 'speaker' } as never)
  indexScheduler(root as unknown as AnyActorRef)
  root.start()
  spawn(root as unknown as AnyActorRef, listener, 'listener', {})
  return { root, heard }
}

test('what one transition sends arrives in its order, and before what the next one sends', () => {
  const { root, heard } = conversation()

  root.send({ type: 'speak', n: 10 })
  root.send({ type: 'speak', n: 20 })

  expect(heard).toEqual([10, 11, 12, 20, 21, 22])
})

test('to a receiver that is gone nothing is said, and the next letter still leaves', () => {
  const { root, heard } = conversation()
  const listener = root.system.get('listener' as never) as AnyActorRef
  ;(listener as unknown as { _stop(): void })._stop()

  root.send({ type: 'speak', n: 1 })
  expect(heard).toEqual([])
})

test('addresses are spelled alike however often and in whatever order they are asked for', () => {
  expect([address.request('a'), address.request('b'), address.request('a'), address.request('')]).toEqual([
    'request/a',
    'request/b',
    'request/a',
    'request/',
  ])
  expect([address.queue('n', 'm'), address.queue('n', 'k'), address.queue('m', 'k'), address.queue('', '')]).toEqual([
    'queue/n/m',
    'queue/n/k',
    'queue/m/k',
    'queue//',
  ])
  expect([address.node('x'), address.node('y'), address.node('x')]).toEqual(['node/x', 'node/y', 'node/x'])
})
