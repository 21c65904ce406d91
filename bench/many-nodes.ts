/** What the size of the fleet costs a request: four nodes hold the model, among four and among two thousand. */
import { join } from 'node:path'
import { load, type Loaded, warmUp } from './requests'
import { type Measured, startFleet, startUpstream } from './servers'

export const FEW = 4
export const MANY = 2_000
/** Ports of the nodes: below those that the system gives to clients. */
const FIRST_PORT = 20_000
/** Two thousand nodes are asked within a poll period or two. */
const INVENTORY_MS = 6_000

export interface BySize {
  readonly few: Loaded[]
  readonly many: Loaded[]
  /** CPU of the idle router, polls included, as a share of one core. */
  readonly idle: { readonly few: number; readonly many: number }
}

const idleShare = async ({ program }: Measured, seconds: number): Promise<number> => {
  const before = program.cpuSeconds()
  await Bun.sleep(seconds * 1000)
  return (program.cpuSeconds() - before) / seconds
}

/** CPU per request includes all that the router does meanwhile: its polls too. */
export const measureSizes = async (
  folder: string,
  script: string,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<BySize> => {
  const upstream = await startUpstream(join(folder, 'nodes'), FIRST_PORT, MANY, FEW)
  const fleets: Measured[] = []
  try {
    const few = await startFleet('few', join(folder, 'few'), upstream.ports.slice(0, FEW))
    fleets.push(few)
    const many = await startFleet('many', join(folder, 'many'), upstream.ports)
    fleets.push(many)
    await Bun.sleep(INVENTORY_MS)
    const idle = { few: await idleShare(few, seconds), many: await idleShare(many, seconds) }
    await warmUp(few, script)
    await warmUp(many, script)
    const loads: { few: Loaded[]; many: Loaded[] } = { few: [], many: [] }
    for (let round = 0; round < rounds; round++) {
      loads.few.push(await load(few, script, seconds))
      loads.many.push(await load(many, script, seconds))
    }
    return { ...loads, idle }
  } finally {
    for (const { program } of [...fleets, upstream]) await program.stop()
  }
}
