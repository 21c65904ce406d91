export interface OptionSpec {
  /** Placeholder of the value; absent for a switch. */
  readonly value?: string
  readonly does: string
}

export interface CommandSpec {
  readonly does: string
  readonly positionals: { readonly text: string; readonly least: number; readonly most: number }
  readonly options: Readonly<Record<string, OptionSpec>>
}

const none = { text: '', least: 0, most: 0 }
const oneNode = { text: 'NODE', least: 1, most: 1 }

const json: OptionSpec = { does: 'one JSON document instead of text' }

/** Commands that talk to a running router. */
const remote = {
  url: { value: 'URL', does: 'the router (or FLEET_URL; default http://127.0.0.1:11435)' },
  key: { value: 'KEY', does: 'key for it (or FLEET_KEY)' },
  json,
} as const

/** Every command that exists: the one list behind parsing and help. */
export const commands = {
  serve: {
    does: 'run the router',
    positionals: none,
    options: {
      config: { value: 'FILE', does: 'configuration (default ./fleet.toml, then usual places)' },
      listen: { value: 'HOST:PORT', does: 'where to listen (default 127.0.0.1:11435)' },
      demo: { does: 'with simulated nodes, to look around' },
      'no-demo': { does: 'wait for real engines instead of simulating some' },
    },
  },
  check: {
    does: 'validate the configuration, show each key and origin',
    positionals: { text: '[FILE]', least: 0, most: 1 },
    options: {
      config: { value: 'FILE', does: 'the same as FILE alone, as serve has it' },
      json,
      quiet: { does: 'print problems only' },
      strict: { does: 'warnings count as failures' },
      apply: { does: 'then let the running router read its file' },
      url: remote.url,
      key: remote.key,
    },
  },
  status: {
    does: 'nodes, resident models and queues on one screen',
    positionals: none,
    options: { ...remote, quiet: { does: 'print nothing; exit 0 when the router is ready' } },
  },
  explain: {
    does: 'why a request went where it went',
    positionals: { text: 'ID|last', least: 1, most: 1 },
    options: { ...remote, 'why-not': { value: 'NODE', does: 'why it did not go to this node' } },
  },
  pause: { does: 'give a node no new requests', positionals: oneNode, options: remote },
  resume: { does: 'let a paused or draining node take requests again', positionals: oneNode, options: remote },
  drain: { does: 'let a node finish what it has and take nothing new', positionals: oneNode, options: remote },
  keys: {
    does: 'make a key for a client, list what keys used',
    positionals: { text: 'add NAME|list', least: 1, most: 2 },
    options: { ...remote, scope: { value: 'LIST', does: 'of a new key: inference, metrics, admin, node' } },
  },
  simulate: {
    does: 'a made-up fleet and workload in virtual time',
    positionals: none,
    options: {
      seed: { value: 'N', does: 'the same number repeats the same run (default 1)' },
      requests: { value: 'N', does: 'how many requests (default 1000)' },
      nodes: { value: 'N', does: 'how many machines (default 4)' },
      policy: { value: 'NAME', does: 'placement policy (default: the configured default)' },
      json,
    },
  },
  version: { does: 'version, commit and platform', positionals: none, options: { json } },
} as const satisfies Readonly<Record<string, CommandSpec>>

export type CommandName = keyof typeof commands

export const isCommand = (name: string): name is CommandName => Object.hasOwn(commands, name)
