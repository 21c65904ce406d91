import { isLoopbackHost } from '../domain/base-url'
import type { Config } from '../domain/config'

export interface Adoptable {
  /** What can be in force now. */
  readonly config: Config
  /** Keys whose new value waits for a restart; a section stands for all of its keys. */
  readonly waiting: readonly string[]
}

/** The next configuration as far as a running router can take it: its listener and its store stay as they are. */
export const adoptable = (running: Config, next: Config): Adoptable => {
  const { host, port } = running.server
  const { backend, path } = running.state
  // Without keys on the listener that is still open, everybody who reaches it would be let in.
  const opensUp = next.auth.mode === 'open' && !isLoopbackHost(host)
  const waiting = [
    ...(next.server.host === host && next.server.port === port ? [] : ['server.listen']),
    ...(opensUp && running.auth.mode === 'keys' ? ['auth'] : []),
    ...(next.state.backend === backend ? [] : ['state.backend']),
    ...(next.state.path === path ? [] : ['state.path']),
  ]
  return {
    config: Object.freeze({
      ...next,
      server: { ...next.server, host, port },
      auth: opensUp ? running.auth : next.auth,
      state: { ...next.state, backend, path },
    }),
    waiting,
  }
}
