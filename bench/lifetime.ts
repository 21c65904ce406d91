/** From the start of the executable to its first answer, and what it holds in memory at rest. */
import { join } from 'node:path'
import { CHAT_PATH, requestBody } from './exchange'
import type { Program } from './processes'
import { load } from './requests'
import { fleetLaunch, type Measured, startFleet } from './servers'

const IDLE_MS = 5_000
const START_LIMIT_MS = 10_000

const asksChat = async (url: string): Promise<void> => {
  const end = performance.now() + START_LIMIT_MS
  while (performance.now() < end) {
    const answer = await fetch(`${url}${CHAT_PATH}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: requestBody(false),
    }).catch(() => undefined)
    if (answer?.ok) return void (await answer.arrayBuffer())
    await Bun.sleep(2)
  }
  throw new Error('dist/fleet did not answer')
}

/** Milliseconds from starting the program until a chat was answered, each time from nothing. */
export const measureStarts = async (folder: string, node: number, times: number): Promise<number[]> => {
  const took: number[] = []
  for (let i = 0; i < times; i++) {
    const { url, start } = fleetLaunch(join(folder, `start-${i}`), [node])
    const startedAt = performance.now()
    const program: Program = start()
    try {
      await asksChat(url)
      took.push(performance.now() - startedAt)
    } finally {
      await program.stop()
    }
  }
  return took
}

export interface Rest {
  /** After the start, in MB. */
  readonly idleMb: number
  /** After each round of requests and a rest, in MB. */
  readonly restedMb: readonly number[]
}

/** Memory of a router that has just started, and after every round of so many requests and a rest. */
export const measureRest = async (
  folder: string,
  node: number,
  script: string,
  { rounds, requests, restMs }: { readonly rounds: number; readonly requests: number; readonly restMs: number },
): Promise<Rest> => {
  const fleet: Measured = await startFleet('rest', join(folder, 'rest'), [node])
  try {
    await Bun.sleep(IDLE_MS)
    const idleMb = fleet.program.rssMb()
    const restedMb: number[] = []
    for (let round = 0; round < rounds; round++) {
      for (let sent = 0; sent < requests; ) sent += (await load(fleet, script, 5)).requests
      await Bun.sleep(restMs)
      restedMb.push(fleet.program.rssMb())
    }
    return { idleMb, restedMb }
  } finally {
    await fleet.program.stop()
  }
}
