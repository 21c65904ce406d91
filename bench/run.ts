/**
 * `npm run bench -- [--quick] [--rounds N] [--check] [--json FILE] [--readme FILE]`: what dist/fleet costs beside nginx and a bare
 * proxy in Bun, all in front of the same node, interleaved in one run. One core is what is measured, another makes load.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Asking, type Translated, translated } from './exchange'
import { ASSERTED_STREAMS, figuresOf, isMet, type Measures, SERVERS, type ServerName } from './figures'
import { measureRest, measureStarts } from './lifetime'
import { measureSizes } from './many-nodes'
import type { Placed } from './placement'
import { CORE, output } from './processes'
import { latency, type Latency, load, type Loaded, warmUp, writeScript } from './requests'
import { reportOf, writeBetweenMarks } from './report'
import { type Measured, type Server, startBare, startFleet, startNginx, startUpstream } from './servers'
import { startStreamUpstream } from './stream-upstream'
import { measureStreams, type Streamed } from './streams'

const FULL = {
  rounds: 5,
  seconds: 4,
  streams: [200, 1_000],
  streamSeconds: 5,
  decisions: 10_000,
  starts: 10,
  rest: { rounds: 5, requests: 100_000, restMs: 60_000 },
} as const
const QUICK = { ...FULL, rounds: 2, seconds: 1, streams: [200], streamSeconds: 2, decisions: 2_000, starts: 3 } as const
/** A quick look takes the state of the code as it comes. */
const QUICK_WARM_REQUESTS = 8_000
/** The port of the node that all servers share. */
const NODE_PORT = 19_990

type Plan = Omit<typeof FULL, 'rounds' | 'seconds' | 'streams' | 'streamSeconds' | 'decisions' | 'starts'> & {
  readonly rounds: number
  readonly seconds: number
  readonly streams: readonly number[]
  readonly streamSeconds: number
  readonly decisions: number
  readonly starts: number
}

const PACKAGES: Readonly<Record<string, string>> = { nginx: 'nginx-light', wrk: 'wrk', taskset: 'util-linux' }

const refuse = (message: string): never => {
  console.error(message)
  process.exit(2)
}

const checkTools = (): void => {
  if (process.platform !== 'linux') refuse('The benchmark reads /proc and pins cores: it runs on Linux only.')
  if (cpus().length < 2) refuse('The benchmark needs two cores: one is measured, the other makes load.')
  const missing = Object.keys(PACKAGES).filter((tool) => Bun.which(tool) === null)
  if (missing.length > 0) {
    const packages = missing.map((tool) => PACKAGES[tool]).join(' ')
    refuse(`Missing: ${missing.join(', ')}. On Debian: apt-get install ${packages}`)
  }
  if (!existsSync(join(import.meta.dir, '..', 'dist', 'fleet')))
    refuse('There is no dist/fleet: npm run build makes it.')
}

const perServer = <T>(make: () => T): Record<ServerName, T> =>
  Object.fromEntries(SERVERS.map((name) => [name, make()])) as Record<ServerName, T>

const say = (text: string): void => console.error(text)

const measureRequests = async (
  servers: Readonly<Record<ServerName, Measured>>,
  script: string,
  plan: Plan,
  quick: boolean,
) => {
  const loads = perServer<Loaded[]>(() => [])
  const latencies = perServer<Latency[]>(() => [])
  for (const name of SERVERS) await warmUp(servers[name], script, quick ? QUICK_WARM_REQUESTS : undefined)
  for (let round = 1; round <= plan.rounds; round++) {
    say(`small requests, round ${round} of ${plan.rounds}`)
    for (const name of SERVERS) {
      loads[name].push(await load(servers[name], script, plan.seconds))
      latencies[name].push(await latency(servers[name], script, Math.max(1, plan.seconds / 2)))
    }
  }
  return { loads, latencies }
}

const measureAllStreams = async (folder: string, plan: Plan): Promise<Pick<Measures, 'streams' | 'translated'>> => {
  const upstream = startStreamUpstream()
  const measured = [
    await startNginx(join(folder, 'stream-nginx'), upstream.port),
    await startBare(folder, upstream.url),
    await startFleet('fleet', join(folder, 'stream-fleet'), [upstream.port]),
  ]
  const servers: readonly Server[] = [{ name: 'direct', url: upstream.url }, ...measured]
  const fleet = servers[servers.length - 1] as Server
  const streams: Record<string, Record<ServerName, Streamed[]>> = {}
  const through: Record<Translated, Streamed[]> = { anthropic: [], responses: [], ollama: [] }
  try {
    for (const count of plan.streams) {
      const rounds = perServer<Streamed[]>(() => [])
      streams[count] = rounds
      // The first round only makes the code warm.
      for (let round = 0; round <= plan.rounds; round++) {
        say(`${count} streams, round ${round} of ${plan.rounds}`)
        for (const server of servers) {
          const result = await measureStreams(server, count, plan.streamSeconds)
          if (round > 0) rounds[server.name as ServerName].push(result)
        }
        if (count !== ASSERTED_STREAMS) continue
        for (const [client, asking] of Object.entries(translated) as [Translated, Asking][]) {
          const result = await measureStreams(fleet, count, plan.streamSeconds, asking)
          if (round > 0) through[client].push(result)
        }
      }
    }
    return { streams, translated: through }
  } finally {
    for (const { program } of measured) await program.stop()
    upstream.stop()
  }
}

const measurePlacement = async (decisions: number): Promise<Placed[]> =>
  JSON.parse(await output([process.execPath, join(import.meta.dir, 'placement.ts'), String(decisions)], CORE.measured))

const measure = async (folder: string, plan: Plan, quick: boolean): Promise<Measures> => {
  const script = writeScript(folder)
  const upstream = await startUpstream(join(folder, 'upstream'), NODE_PORT, 1, 1)
  const started: Measured[] = [upstream]
  const start = async (server: Promise<Measured>): Promise<Measured> => {
    started.push(await server)
    return server
  }
  const stop = async (servers: readonly Measured[]): Promise<void> => {
    for (const { program } of servers) await program.stop()
  }
  try {
    const servers = {
      direct: upstream,
      nginx: await start(startNginx(join(folder, 'nginx'), NODE_PORT)),
      bare: await start(startBare(folder, upstream.url)),
      fleet: await start(startFleet('fleet', join(folder, 'fleet'), upstream.ports)),
    }
    const requests = await measureRequests(servers, script, plan, quick)
    await stop(started.splice(1))
    const streamed = await measureAllStreams(folder, plan)
    say('placement')
    const placed = await measurePlacement(plan.decisions)
    say('2 000 nodes')
    const sizes = await measureSizes(folder, script, plan)
    say('starts')
    const startsMs = await measureStarts(folder, NODE_PORT, plan.starts)
    if (quick) return { ...requests, ...streamed, placed, sizes, startsMs }
    say('memory at rest: five rounds of 100 000 requests and a minute')
    return {
      ...requests,
      ...streamed,
      placed,
      sizes,
      startsMs,
      rest: await measureRest(folder, NODE_PORT, script, plan.rest),
    }
  } finally {
    await stop(started)
  }
}

/** This program makes load too, so it stays off the core that is measured. */
const pinSelf = (): void => {
  Bun.spawnSync(['taskset', '-acp', String(CORE.load), String(process.pid)], { stdout: 'ignore', stderr: 'ignore' })
}

const conditions = (plan: Plan): string =>
  `${cpus()[0]?.model ?? 'unknown CPU'}, one core measured and one for load, Bun ${Bun.version}; medians of ${plan.rounds} interleaved rounds.`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    check: { type: 'boolean', default: false },
    json: { type: 'string' },
    readme: { type: 'string' },
  },
})

checkTools()
pinSelf()
const folder = mkdtempSync(join(tmpdir(), 'fleet-bench-'))
try {
  const base: Plan = values.quick ? QUICK : FULL
  const plan: Plan = values.rounds === undefined ? base : { ...base, rounds: Math.max(1, Number(values.rounds) || 1) }
  const measures = await measure(folder, plan, values.quick)
  const figures = figuresOf(measures)
  const text = reportOf(measures, figures, conditions(plan))
  console.log(text)
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify({ conditions: conditions(plan), figures, measures }, null, 2)}\n`)
  if (values.readme !== undefined) writeBetweenMarks(values.readme, text)
  if (values.check && !figures.every(isMet)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
