import { expect, test } from 'bun:test'
import { allFamilies, createFamilies, keyFamilies } from '../../src/observe/families'
import { samplesOf, sumBy } from '../support/exposition'
import { fastModel, slowModel, until } from '../support/fakes'
import { withRouter } from '../support/router'

/** Two of them do not fit together. */
const big = { sizeGb: 5 }
const quiet = { log: { level: 'silent' } } as const

test(
  'every metric is present after one request of each kind',
  () =>
    withRouter(
      [
        {
          kind: 'ollama',
          models: [fastModel('m', big), fastModel('n', big), slowModel('slow', big)],
          resident: ['m'],
          memoryGb: 8,
          answerTokens: 12,
        },
        { kind: 'llamacpp', models: [fastModel('m')], slots: 2 },
      ],
      {
        ...quiet,
        policy: { holdTimeoutMs: 300 },
        describe: (index) => ({ memoryGb: 8, ...(index === 0 ? { maxConcurrency: 1 } : {}) }),
      },
      async ({ chat, ollama, metrics, idle, of, router, fakes: [a, b], url }) => {
        const done = async (answer: Promise<Response>): Promise<void> => void (await (await answer).text())
        await done(chat())
        // One whose prompt begins with a line that changes with every request.
        const system = [{ type: 'text', text: 'x-anthropic-billing-header: cch=0;' }]
        const messages = [{ role: 'user', content: 'hi' }]
        const body = JSON.stringify({ model: 'm', max_tokens: 5, system, messages })
        await done(fetch(`${url}/v1/messages`, { method: 'POST', body }))
        // Cold: another model has to go for it.
        await done(ollama({ model: 'n' }))
        // Another model stands in.
        await done(chat({ model: 'nobody-has-it', headers: { 'x-fleet-fallback': 'm' } }))
        // Tried on a node that fails, then elsewhere.
        b?.faults.add({ type: 'reset', times: 1 })
        await done(chat())
        // One that waits for the other's slot, one whose client leaves, one that nobody knows, one that breaks.
        await Promise.all([
          done(ollama({ model: 'slow', more: { options: { num_predict: 4 } } })),
          done(ollama({ model: 'slow' })),
        ])
        const client = new AbortController()
        setTimeout(() => client.abort(), 60)
        await done(ollama({ model: 'slow', signal: client.signal })).catch(() => {})
        await done(chat({ model: 'unheard-of' }))
        b?.faults.add({ type: 'truncate', afterChunks: 2, times: 1 })
        a?.faults.add({ type: 'truncate', afterChunks: 2, times: 1 })
        await done(chat())
        // Held until its time is over.
        await fetch(`${url}/api/v1/nodes/a/pause`, { method: 'POST' })
        const held = done(chat({ model: 'n' }))
        await until(() => router.fleet.overview().held === 1)
        const whileHeld = await metrics()
        await held
        await fetch(`${url}/api/v1/nodes/a/resume`, { method: 'POST' })
        router.journal.record({
          type: 'actor.failed',
          at: Date.now(),
          actor: 'node/a',
          machine: 'node',
          message: 'test',
          restarted: true,
        })
        router.journal.record({ type: 'config.rejected', at: Date.now(), cause: 'file', problems: [] })
        // The scripted engines write no broken calls; what mends one is tested on its own.
        const [settled] = of('request.settled')
        if (settled === undefined) throw new Error('nothing has settled')
        router.journal.record({ ...settled, outcome: { ...settled.outcome, toolCallsRepaired: 1 } })
        await idle(25_000)

        const page = await metrics()
        const present = new Set(
          [...samplesOf(page), ...samplesOf(whileHeld)].map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')),
        )
        const families = createFamilies()
        const perKey = keyFamilies(families)
        const names = allFamilies(families).flatMap((family) => (perKey.includes(family) ? [] : family.name))
        expect(names.filter((name) => !present.has(name))).toEqual([])
        expect(sumBy(page, 'fleet_requests_total', 'outcome')).toEqual({
          completed: 8,
          client_disconnected: 1,
          rejected: 1,
          incomplete: 1,
          expired: 1,
        })
        expect(sumBy(whileHeld, 'fleet_held', 'reason')).toEqual({ paused: 1 })
        expect(sumBy(page, 'fleet_retries_total', 'node')).toEqual({ b: 1 })
        expect([...present].filter((name) => name.startsWith('process_')).length).toBeGreaterThan(3)
        expect(page).not.toMatch(/NaN|undefined/)
      },
    ),
  40_000,
)
