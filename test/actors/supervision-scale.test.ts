import { expect, test } from 'bun:test'
import { instantFleet, settledRss } from '../support/instant'
import { spawnMany } from '../support/many'

const MB = 1024 * 1024

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

test('BL-Y01 100 000 request actors come and go: memory is flat, registry and system are empty', async () => {
  const { rss, left, ids } = await spawnMany(100_000, 20_000)

  console.log(`BL-Y01 RSS in MB after each 20 000: ${rss.map((bytes) => Math.round(bytes / MB)).join(' ')}`)
  // The first round still warms up.
  expect((rss.at(-1) ?? 0) - (rss[0] ?? 0)).toBeLessThan(24 * MB)
  expect(left).toEqual({ registry: 0, reserved: 0, waiting: 0 })
  expect(ids.filter((id) => id.startsWith('request/'))).toEqual([])
}, 60_000)

test('BL-Y05 5 000 requests in 100 ms: no block of 100 ms, 150 us of CPU and 8 KB for each', async () => {
  const held: (() => void)[] = []
  const core = await instantFleet({
    nodes: 4,
    slots: 64,
    change: { limits: { waitingPerModel: 10_000 } },
    answer: (finish) => void held.push(finish),
  })
  /** Answers end one by one, as sockets tell of them. */
  const drain = async (): Promise<void> => {
    while (core.fleet.overview().inFlight > 0) {
      for (const finish of held.splice(0, 16)) finish()
      await Bun.sleep(0)
    }
  }
  const warm = Array.from({ length: 2_000 }, () => core.submit())
  await drain()
  await Promise.all(warm)
  const before = settledRss()

  // Between two turns of the loop: time that passed while we computed. What other processes took is not ours.
  const clocks = () => ({ wall: performance.now(), cpu: cpuMs() })
  let last = clocks()
  let longest = 0
  const beat = setInterval(() => {
    const now = clocks()
    longest = Math.max(longest, Math.min(now.wall - last.wall, now.cpu - last.cpu))
    last = now
  }, 1)
  const cpu = process.cpuUsage()
  const answers: Promise<unknown>[] = []
  for (let burst = 0; burst < 100; burst++) {
    for (let i = 0; i < 50; i++) answers.push(core.submit())
    await Bun.sleep(1)
  }
  const spent = process.cpuUsage(cpu)
  const retained = (settledRss() - before) / 5_000
  last = clocks()
  await drain()
  await Promise.all(answers)
  clearInterval(beat)
  await core.stop()

  const perRequest = (spent.user + spent.system) / 5_000
  console.log(
    `BL-Y05 longest block ${longest.toFixed(1)} ms, ${perRequest.toFixed(0)} us CPU and ${(retained / 1024).toFixed(1)} KB each`,
  )
  expect(longest).toBeLessThan(100)
  expect(perRequest).toBeLessThan(150)
  expect(retained).toBeLessThan(8 * 1024)
}, 30_000)
