import { type Connection, createConnection } from './connection'
import { createMachine, FACES } from './machine'
import type { FakeModel, FakeNode, FakeOptions, LoggedRequest } from './options'
import { serveRequest } from './serve'
import type { Machine } from './turn'
import { createWheel } from './wheel'

const HOST = '127.0.0.1'

/** Loads a model without a client; resolves when it is in memory. */
const loadInto = (machine: Machine, model: FakeModel): Promise<void> =>
  new Promise((resolve, reject) => {
    machine.engine.submit({
      model,
      promptTokens: 0,
      tokens: 0,
      event: () => {},
      produced: () => true,
      done: () => resolve(),
      failed: (message) => reject(new Error(message)),
      cut: () => reject(new Error(`${model.name} was evicted`)),
    })
  })

/** A listener that can go away and come back on its port. */
const createListener = (machine: Machine, log: LoggedRequest[], sockets: { opened: number; closed: number }) => {
  const { faults, options } = machine
  const face = FACES[options.kind]
  const connections = new Set<Connection>()

  const listen = (port: number) =>
    Bun.listen<Connection>({
      hostname: HOST,
      port,
      socket: {
        open(socket) {
          sockets.opened += 1
          socket.setNoDelay(true)
          socket.data = createConnection(socket, {
            headers: face.headers,
            serve: (request, reply, connection) => serveRequest(machine, face, log, request, reply, connection),
          })
          connections.add(socket.data)
        },
        data(socket, bytes) {
          if (faults.peek('blackhole')) socket.data.deaf = true
          socket.data.data(bytes)
        },
        drain: (socket) => socket.data.drain(),
        close(socket) {
          sockets.closed += 1
          connections.delete(socket.data)
          socket.data.closed()
        },
        error() {},
      },
    })

  let listener: ReturnType<typeof listen> | undefined = listen(options.port ?? 0)
  let stopped = false
  const { port } = listener

  const close = (): void => {
    listener?.stop()
    listener = undefined
    for (const connection of connections) connection.reset()
  }

  faults.watch(() => {
    if (faults.peek('refuse')) close()
    else if (!stopped) listener ??= listen(port)
  })
  return {
    port,
    stop(): void {
      stopped = true
      close()
    },
  }
}

/** Starts a fake engine on the loopback interface: a real HTTP server that behaves, or misbehaves, like one. */
export const startFake = async (options: FakeOptions): Promise<FakeNode> => {
  const wheel = createWheel(options.timeScale ?? 1)
  const machine = createMachine(options, wheel)
  const { engine, faults, models } = machine
  const log: LoggedRequest[] = []
  const sockets = { opened: 0, closed: 0 }
  const listener = createListener(machine, log, sockets)

  // A llama-server that starts without its model in memory is loading it.
  const [first] = models
  if (options.kind === 'llamacpp' && first && !engine.find(first.name)) loadInto(machine, first).catch(() => {})

  return {
    kind: options.kind,
    name: options.name ?? options.kind,
    url: `http://${HOST}:${listener.port}`,
    port: listener.port,
    log,
    loads: engine.loads,
    faults,
    sockets,
    running: engine.running,
    peak: engine.peak,
    resident: () =>
      engine
        .residents()
        .filter((each) => each.state === 'ready')
        .map((each) => each.model.name),
    interrupted: engine.interrupted,
    async load(name) {
      const model = models.find((each) => each.name === name)
      if (!model) throw new Error(`no model ${name}`)
      await loadInto(machine, model)
    },
    async stop() {
      wheel.stop()
      listener.stop()
    },
  }
}
