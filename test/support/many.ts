import { instantFleet, settledRss } from './instant'

/** Sends so many requests through a core, some at once, and looks at its memory after each `round`. */
export const spawnMany = async (total: number, round: number) => {
  const core = await instantFleet()
  const rss: number[] = []
  for (let done = 0; done < total; done += round) {
    for (let i = 0; i < round; i += 200) await Promise.all(Array.from({ length: 200 }, () => core.submit()))
    rss.push(settledRss())
  }
  const { shared, root } = core.fleet
  const left = { registry: shared.requests.size, reserved: shared.desk.ledger.total(), waiting: shared.desk.room.size }
  const ids = Object.keys(root.system.getAll())
  await core.stop()
  return { rss, left, ids }
}
