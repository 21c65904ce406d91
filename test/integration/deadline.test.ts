import { expect, test } from 'bun:test'
import { renderExplain } from '../../src/observe/explain'
import { readJson, slowModel } from '../support/fakes'
import { withRouter } from '../support/router'

test('an answer that would come too late is refused at once once it was measured, and explained', async () => {
  const spec = { kind: 'openai' as const, models: [slowModel()], answerTokens: 6 }
  await withRouter([spec], {}, async ({ chat, router, idle }) => {
    const early = await chat({ stream: false, headers: { 'X-Fleet-Deadline': '0.05' } })
    expect(early.status).toBe(200)
    for (let at = 0; at < 2; at++) await (await chat({ stream: false })).text()
    await idle()

    const late = await chat({ stream: false, headers: { 'X-Fleet-Deadline': '0.05' } })
    const inTime = await chat({ stream: false, headers: { 'X-Fleet-Deadline': '30' } })

    expect([late.status, inTime.status]).toEqual([504, 200])
    expect(late.headers.get('x-should-retry')).toBe('false')
    expect(await readJson(late)).toMatchObject({
      error: { code: 'deadline_exceeded', message: expect.stringContaining('measured over 3 answers') },
    })
    const record = router.decisions.get(late.headers.get('x-request-id') ?? '')
    expect(record).toMatchObject({
      rounds: [{ estimate: { basis: 'measured', samples: 3 } }],
      outcome: { end: 'expired', status: 504 },
    })
    expect(record && renderExplain(record)).toMatch(/the answer expected in [\d.]+ m?s \(measured of 3\)/)
    await idle()
  })
})
