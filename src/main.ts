import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { firstRunText } from './cli/banner'
import { exitCode } from './cli/exit-codes'
import type { Io } from './cli/io'
import { programName } from './cli/program'
import { runCommand } from './cli/run'
import type { Build } from './cli/version'
import { type Disk, loadFromDisk } from './config/from-disk'
import type { ConfigSource } from './config/reload'
import { renderProblems } from './config/render'
import { createFileSource } from './config/source'
import type { Config } from './domain/config'
import { RouterError } from './domain/errors'
import { createDiscovery } from './nodes/discovery'
import type { Fleet } from './ports/fleet'
import { type Demo, startDemo } from './sim/demo'
import { openRouter } from './router'
import { simulate } from './sim/run'
import { survive, systemClock, systemRandom } from './system'

interface ServeInput {
  readonly build: Build
  readonly disk: Disk
  readonly io: Io
  readonly options: Readonly<Record<string, string | true>>
}

const clock = systemClock
const TROUBLE_EVERY_MS = 60_000

/** `fleet serve`: configuration -> ports -> fleet -> HTTP. Returns the exit code once it has shut down. */
const serve = async ({ build, disk, io, options }: ServeInput): Promise<number> => {
  const named = typeof options.config === 'string' ? options.config : undefined
  const flags: Record<string, string> = typeof options.listen === 'string' ? { 'server.listen': options.listen } : {}
  const loaded = loadFromDisk(disk, named, flags)
  if (loaded.problems.length > 0) io.err(renderProblems(loaded.problems, loaded.text))
  const { config } = loaded
  if (config === undefined) return exitCode.invalidConfig
  try {
    const source = createFileSource({ disk, flags, first: loaded, ...(named === undefined ? {} : { named }) })
    return await run({ build, disk, io, options }, config, source)
  } catch (error) {
    io.err(`fleet: ${sayable(error, config)}\n`)
    return exitCode.failed
  }
}

const sayable = (error: unknown, { server }: Config): string => {
  if ((error as { code?: string }).code === 'EADDRINUSE')
    return `${server.host}:${server.port} is taken. Is another fleet running? --listen HOST:PORT chooses another address.`
  if (error instanceof RouterError) return [error.message, error.details.hint].filter(Boolean).join(' ')
  return error instanceof Error ? error.message : String(error)
}

const run = async ({ build, disk, io, options }: ServeInput, first: Config, source: ConfigSource): Promise<number> => {
  // Without a handler the signal would end the process, also while it still starts.
  let hangUp = (): void => {}
  process.on('SIGHUP', () => hangUp())
  const router = await openRouter(first, disk.env, build, source)
  const { fleet, journal, url, port, config } = router
  survive((message, stack) => router.log.error({ message, stack }, 'process.uncaught'))

  let demo: Demo | undefined
  const beginDemo = async (): Promise<void> => {
    demo = await startDemo(Math.floor(systemRandom.next() * 1e9))
    for (const node of demo.nodes) fleet.addNode(node)
  }
  const endDemo = async (): Promise<void> => {
    const ending = demo
    demo = undefined
    for (const { name } of ending?.nodes ?? []) fleet.removeNode(name)
    await ending?.stop()
  }

  const isForced = options.demo === true
  const look = () =>
    createDiscovery({
      http: router.http,
      get everyMs() {
        return config.discovery.everyMs
      },
      clock,
      known: () => fleet.descriptions(),
      ownPort: port,
      found: (node, version) => {
        const about = version === undefined ? {} : { version }
        journal.record({
          type: 'node.found',
          at: clock.now(),
          node: node.name,
          kind: node.kind,
          url: node.url,
          ...about,
        })
        fleet.addNode(node)
        // Simulated answers end as soon as there is something real.
        if (!isForced) void endDemo()
      },
    })
  let discovery = look()

  // Nothing supervises the root: without it the process serves nobody, and whoever watches the process starts another.
  const broken = new Promise<number>((resolve) => {
    router.listenTo((fact) => {
      if (fact.type === 'actor.failed' && fact.machine === 'fleet') resolve(exitCode.failed)
    })
  })
  const asked = shutdown(io, fleet, config, async (force) => {
    discovery.stop()
    await router.stopListening(force)
  })

  if (isForced) await beginDemo()
  const found = config.discovery.local && !isForced ? await discovery.scanOnce() : []
  const isAlone = found.length === 0 && config.nodes.length === 0
  if (!isForced && isAlone && options['no-demo'] !== true) await beginDemo()
  let isLooking = config.discovery.local && !isForced
  if (isLooking) discovery.start()

  /** What the configuration decides beside the fleet: the demo and the search for engines. */
  const afterReload = (): void => {
    if (isForced) return
    if (config.nodes.length > 0) void endDemo()
    if (config.discovery.local === isLooking) return
    isLooking = config.discovery.local
    discovery.stop()
    discovery = look()
    if (isLooking) discovery.start()
  }
  router.listenTo(({ type }) => {
    if (type === 'config.applied') afterReload()
  })
  hangUp = () => void router.reloader?.reload('signal')
  router.reloader?.start()

  const facts = {
    version: build.version,
    url,
    file: source.first.path,
    found,
    configured: config.nodes,
    demo: demo?.nodes ?? [],
    isForced,
    hostname: hostname(),
    program,
    needsKey: config.auth.mode === 'keys',
  }
  io.err(firstRunText(facts))

  const trouble = setInterval(() => {
    const { lost, message } = router.store.trouble()
    if (lost > 0) router.log.warn({ lost, reason: message }, 'store.failing')
  }, TROUBLE_EVERY_MS)
  trouble.unref()

  const code = await Promise.race([asked, broken])
  await endDemo()
  router.close()
  return code
}

/** Frees the open connections after a forced stop, which Bun may leave hanging, in ms. */
const STOP_PATIENCE_MS = 1_000

/**
 * Resolves with the exit code once SIGTERM or SIGINT was carried out: no new work, what runs may end within the grace,
 * then it is cut in-band. A second signal does not wait.
 */
const shutdown = (io: Io, fleet: Fleet, config: Config, stop: (force: boolean) => Promise<void>): Promise<number> =>
  new Promise((resolve) => {
    let asked = 0
    const onSignal = (signal: NodeJS.Signals): void => {
      asked += 1
      if (asked > 1) {
        resolve(signal === 'SIGINT' ? 130 : exitCode.failed)
        return
      }
      const { shutdownGraceMs } = config.server
      io.err(
        `fleet: shutting down; running answers may end within ${Math.round(shutdownGraceMs / 1000)} s (again: now)\n`,
      )
      const closing = stop(false)
      void fleet.stop(shutdownGraceMs).then(async () => {
        const patience = new Promise<void>((done) => setTimeout(done, STOP_PATIENCE_MS))
        await Promise.race([closing, patience])
        await Promise.race([stop(true), patience])
        resolve(exitCode.done)
      })
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })

declare const FLEET_VERSION: string
declare const FLEET_COMMIT: string

const isSource = typeof FLEET_VERSION === 'undefined'

const program = programName({ isSource, execPath: process.execPath, cwd: process.cwd(), onPath: Bun.which('fleet') })

const build: Build = {
  version: isSource ? '0.1.0' : FLEET_VERSION,
  commit: typeof FLEET_COMMIT === 'undefined' ? 'source' : FLEET_COMMIT,
  platform: `${process.platform}-${process.arch}`,
  runtime: `bun ${Bun.version}`,
}

const io: Io = {
  env: process.env,
  fetch: (url, init) => fetch(url, init),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  columns: process.stdout.columns ?? 80,
  isTty: process.stdout.isTTY === true,
}

const disk: Disk = {
  env: process.env,
  cwd: process.cwd(),
  read: (path: string) => readFileSync(path, 'utf8'),
  exists: existsSync,
}

process.exit(
  await runCommand(process.argv.slice(2), {
    build,
    io,
    disk,
    serve: (options) => serve({ build, disk, io, options }),
    simulate,
  }),
)
