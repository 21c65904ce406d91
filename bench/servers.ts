/** The upstream and the three proxies in front of it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { answerBody, CHAT_PATH, MODEL, modelsBody } from './exchange'
import { CORE, freePort, launch, type Program, untilAnswers } from './processes'

export interface Server {
  readonly name: string
  readonly url: string
  /** Absent for what runs inside the benchmark itself. */
  readonly program?: Program
}

/** A server that is a program of its own. */
export interface Measured extends Server {
  readonly program: Program
}

const root = join(import.meta.dir, '..')
const FLEET = join(root, 'dist', 'fleet')

const nginxMain = (folder: string, http: string): string => `
worker_processes 1;
daemon off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_rlimit_nofile 65536;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 100000000;
  keepalive_timeout 300s;
  default_type application/json;
  ${http}
}
`

const nginx = (folder: string, http: string, core: number): Program => {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, nginxMain(folder, http))
  return launch({ command: ['nginx', '-p', folder, '-c', file], core, log: join(folder, 'out.log') })
}

/** Ports of the upstream: `nodes` servers that all give the same answer; the first `holders` list the model. */
export interface Upstream extends Measured {
  readonly ports: readonly number[]
}

/** nginx with a static answer: the fastest thing that can stand behind a proxy. */
export const startUpstream = async (
  folder: string,
  from: number,
  nodes: number,
  holders: number,
): Promise<Upstream> => {
  const range = (first: number, last: number): string => `127.0.0.1:${first}${last > first ? `-${last}` : ''}`
  const block = (listen: string, model: string): string => `
  server {
    listen ${listen};
    location = ${CHAT_PATH} { return 200 '${answerBody}'; }
    location = /v1/models { return 200 '${modelsBody(model)}'; }
  }`
  const http = [
    block(range(from, from + holders - 1), MODEL),
    ...(nodes > holders ? [block(range(from + holders, from + nodes - 1), 'another-model')] : []),
  ].join('')
  const url = `http://127.0.0.1:${from}`
  const program = nginx(folder, http, CORE.load)
  await untilAnswers(`${url}/v1/models`)
  return { name: 'direct', url, program, ports: Array.from({ length: nodes }, (_, index) => from + index) }
}

export const startNginx = async (folder: string, upstreamPort: number): Promise<Measured> => {
  const port = freePort()
  const http = `
  upstream nodes { server 127.0.0.1:${upstreamPort}; keepalive 2048; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} reuseport;
    location / {
      proxy_pass http://nodes;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }`
  const program = nginx(folder, http, CORE.measured)
  const url = `http://127.0.0.1:${port}`
  await untilAnswers(`${url}/v1/models`)
  return { name: 'nginx', url, program }
}

export const startBare = async (folder: string, upstreamUrl: string): Promise<Measured> => {
  const port = freePort()
  const program = launch({
    command: [process.execPath, join(import.meta.dir, 'bare-proxy.ts')],
    core: CORE.measured,
    env: { PORT: String(port), UPSTREAM: upstreamUrl, BUN_CONFIG_MAX_HTTP_REQUESTS: '16384' },
    log: join(folder, 'bare.log'),
  })
  const url = `http://127.0.0.1:${port}`
  await untilAnswers(`${url}/v1/models`)
  return { name: 'bare', url, program }
}

/** What a node of the benchmark may run at once: never the bottleneck. */
const CONCURRENCY = 10_000

const fleetToml = (port: number, nodes: readonly number[]): string =>
  [
    'version = 1',
    `server.listen = "127.0.0.1:${port}"`,
    'discovery.local = false',
    ...nodes.map(
      (node, index) => `
[[nodes]]
name = "node-${index}"
kind = "openai"
url = "http://127.0.0.1:${node}"
max_concurrency = ${CONCURRENCY}`,
    ),
    '',
  ].join('\n')

/** Writes `fleet.toml` into a fresh folder and tells how to start `dist/fleet` with it; everything else is default. */
export const fleetLaunch = (folder: string, nodes: readonly number[]) => {
  mkdirSync(folder, { recursive: true })
  const port = freePort()
  const file = join(folder, 'fleet.toml')
  writeFileSync(file, fleetToml(port, nodes))
  return {
    url: `http://127.0.0.1:${port}`,
    start: (): Program =>
      launch({
        command: [FLEET, 'serve', '--config', file],
        core: CORE.measured,
        env: { STATE_DIRECTORY: join(folder, 'state') },
        log: join(folder, 'fleet.log'),
      }),
  }
}

export const startFleet = async (name: string, folder: string, nodes: readonly number[]): Promise<Measured> => {
  const { url, start } = fleetLaunch(folder, nodes)
  const program = start()
  await untilAnswers(`${url}/readyz`, 20_000)
  return { name, url, program }
}
