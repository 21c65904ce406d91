/** Small requests that are not streamed: throughput and CPU at 32 connections, latency at one. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CHAT_PATH, requestBody } from './exchange'
import { CORE, output } from './processes'
import type { Measured, Server } from './servers'

export interface Loaded {
  readonly perSecond: number
  /** CPU of the server per request, in microseconds. */
  readonly cpuUs: number
  readonly requests: number
}

export interface Latency {
  /** In microseconds. */
  readonly p50: number
  readonly p99: number
}

/** wrk takes the request from a script. */
export const writeScript = (folder: string): string => {
  const file = join(folder, 'request.lua')
  writeFileSync(
    file,
    `wrk.method = "POST"
wrk.body = [==[${requestBody(false)}]==]
wrk.headers["content-type"] = "application/json"
`,
  )
  return file
}

const UNIT_US: Readonly<Record<string, number>> = { us: 1, ms: 1e3, s: 1e6 }

const durationUs = (text: string, label: string): number => {
  const [, value, unit = ''] = new RegExp(`${label}\\s+([\\d.]+)(us|ms|s)`).exec(text) ?? []
  return Number(value) * (UNIT_US[unit] ?? Number.NaN)
}

const wrk = async (server: Server, script: string, connections: number, seconds: number): Promise<string> => {
  const url = `${server.url}${CHAT_PATH}`
  const text = await output(
    ['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '20s', '--latency', '-s', script, url],
    CORE.load,
  )
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`${server.name} answered with errors:\n${text}`)
  return text
}

/** As many requests as 32 connections carry. */
export const load = async (server: Measured, script: string, seconds: number): Promise<Loaded> => {
  const before = server.program.cpuSeconds()
  const text = await wrk(server, script, 32, seconds)
  const cpuSeconds = server.program.cpuSeconds() - before
  const requests = Number(/(\d+) requests in/.exec(text)?.[1])
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]),
    cpuUs: (cpuSeconds * 1e6) / requests,
    requests,
  }
}

/** One request after the other. */
export const latency = async (server: Server, script: string, seconds: number): Promise<Latency> => {
  const text = await wrk(server, script, 1, seconds)
  return { p50: durationUs(text, '50%'), p99: durationUs(text, '99%') }
}

/**
 * Enough for every function to be compiled: before that a request of a JavaScript server costs several times as much, and
 * the threads that compile still took 5 us of each request between 40 000 and 75 000, none after 100 000.
 */
const WARM_REQUESTS = 100_000

export const warmUp = async (server: Measured, script: string, requests = WARM_REQUESTS): Promise<void> => {
  for (let sent = 0; sent < requests; ) sent += (await load(server, script, 2)).requests
}
