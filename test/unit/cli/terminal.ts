import type { Args } from '../../../src/cli/args'
import type { Io } from '../../../src/cli/io'

type Answer = Response | Error

/** A terminal and a router: answers by path, what was asked and what was printed. */
export const terminal = (answers: Readonly<Record<string, () => Answer>>, env: Io['env'] = {}, columns = 80) => {
  const asked: { url: string; method: string; authorization: string | null }[] = []
  let out = ''
  let err = ''
  const io: Io = {
    env,
    columns,
    isTty: false,
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    fetch: async (url, init) => {
      asked.push({ url, method: init.method ?? 'GET', authorization: new Headers(init.headers).get('authorization') })
      const answer = answers[new URL(url).pathname]?.() ?? reply({ fleet: { message: 'There is no such thing.' } }, 404)
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  return { io, asked, printed: () => out, complained: () => err }
}

export const reply = (body: unknown, status = 200): Response =>
  Response.json(body, { status, headers: { 'x-fleet-instance': 'inst-1' } })

export const args = (positionals: readonly string[] = [], options: Args['options'] = {}): Args => ({
  positionals,
  options,
})
