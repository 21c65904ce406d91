import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { DecisionRecord } from '../../src/domain/record'
import { slowModel, until, withFakes } from '../support/fakes'
import { withRouter } from '../support/router'
import { withServed } from '../support/served'

const GRACE_MS = 1_000

test(
  'BL-Z01 SIGTERM during endless streams: each ends with an error of its protocol, records are kept, exit 0 in time',
  () =>
    withFakes(
      [{ kind: 'llamacpp', slots: 20, answerTokens: 100_000, models: [slowModel('m', { decodePerSecond: 50 })] }],
      async (node) => {
        const config = `[server]
shutdown_grace = "${GRACE_MS / 1000}s"
[[nodes]]
name = "a"
kind = "llamacpp"
url = "${node.url}"
`
        await withServed(config, async ({ url, folder, kill, exited }) => {
          const ask = (path: string) =>
            fetch(`${url}${path}`, {
              method: 'POST',
              body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
            })
          const answers = await Promise.all(
            Array.from({ length: 10 }, (_, i) => ask(i % 2 ? '/api/chat' : '/v1/chat/completions')),
          )
          expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
          const bodies = answers.map((answer) => answer.text())
          await until(() => node.running() === 10)

          const asked = performance.now()
          kill('SIGTERM')
          await Bun.sleep(GRACE_MS / 2)
          expect(node.running()).toBe(10)
          const late = await ask('/v1/chat/completions').then(
            ({ status }) => status,
            () => 'refused',
          )
          const texts = await Promise.all(bodies)
          const code = await exited

          expect(code).toBe(0)
          expect(performance.now() - asked).toBeGreaterThan(GRACE_MS - 50)
          expect(performance.now() - asked).toBeLessThan(GRACE_MS + 2_000)
          expect(['refused', 503]).toContain(late)
          for (const [i, text] of texts.entries()) {
            const last = text.trimEnd().split('\n').at(-1) ?? ''
            const { error } = JSON.parse(i % 2 ? last : last.replace(/^data: /, ''))
            expect(JSON.stringify(error)).toContain('shutting down')
            expect(text).not.toContain('[DONE]')
          }
          await until(() => node.running() === 0)
          const database = new Database(join(folder, 'fleet.db'), { readonly: true })
          const rows = database.query('select * from decisions').all() as Record<string, unknown>[]
          database.close()
          const records = rows.map(
            (row) =>
              JSON.parse(String(Object.values(row).find((value) => String(value).startsWith('{')))) as DecisionRecord,
          )
          expect(records.map(({ outcome }) => [outcome?.end, outcome?.code])).toEqual(
            Array.from({ length: 10 }, () => ['incomplete', 'draining']),
          )
        })
      },
    ),
  20_000,
)

test('what waits when the router stops is told so at the end of the grace, in time and with Retry-After', () =>
  withRouter(
    [{ kind: 'llamacpp', slots: 1, answerTokens: 100_000, models: [slowModel()] }],
    { log: { level: 'silent' } },
    async ({ chat, router, fakes }) => {
      const running = await chat()
      const waiting = chat()
      await until(() => router.fleet.waiters().length === 1)

      const stopped = router.fleet.stop(300)
      const refused = await chat()
      expect(refused.status).toBe(503)
      expect(await stopped).toEqual({ cut: 2 })
      const answer = await waiting

      expect(answer.status).toBe(503)
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await running.text()).toContain('shutting down')
      await until(() => fakes[0]?.running() === 0)
    },
  ))
