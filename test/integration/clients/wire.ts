import type { Config } from '../../../src/domain/config'
import { fastModel, type FakeSpec } from '../../support/fakes'
import type { Setup } from '../../support/router'
import type { Json } from '../clients'

/** A fake with one model in memory that can call tools and think. */
export const able = (kind: FakeSpec['kind'], name = 'm', more: Partial<FakeSpec> = {}): FakeSpec => ({
  kind,
  resident: [name],
  models: [fastModel(name, { capabilities: ['chat', 'completion', 'tools', 'thinking', 'insert'] })],
  ...more,
})

/** A fake whose model embeds and does nothing else. */
export const embedding = (): FakeSpec => ({ kind: 'ollama', models: [fastModel('e', { capabilities: ['embedding'] })] })

export const withAliases = (aliases: Config['aliases']): Setup => ({ aliases: aliases as never })

export interface Event {
  readonly name?: string
  readonly data: Json
}

/** The events of an SSE stream in order, `[DONE]` as that text; comments left out. */
export const eventsOf = (body: string): readonly Event[] =>
  body
    .split('\n\n')
    .filter((block) => /^data:/m.test(block))
    .map((block) => {
      const field = (name: string): string | undefined =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      const data = field('data') ?? ''
      const name = field('event')
      return { ...(name === undefined ? {} : { name }), data: data === '[DONE]' ? data : JSON.parse(data) }
    })

/** One client: where it sends to, with the headers that it puts on everything. */
export const clientAt = (url: string, headers: Readonly<Record<string, string>>) => {
  const send = (method: string, path: string, more: Readonly<Record<string, string>>, body?: Uint8Array | string) =>
    fetch(`${url}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers, ...more },
      ...(body === undefined ? {} : { body }),
    })
  return {
    get: (path: string, more: Readonly<Record<string, string>> = {}) => send('GET', path, more),
    head: (path: string) => send('HEAD', path, {}),
    options: (path: string, more: Readonly<Record<string, string>>) => send('OPTIONS', path, more),
    post: (path: string, body: object, more: Readonly<Record<string, string>> = {}) =>
      send('POST', path, more, JSON.stringify(body)),
    postBytes: (path: string, body: Uint8Array, more: Readonly<Record<string, string>>) =>
      send('POST', path, more, body),
  }
}
