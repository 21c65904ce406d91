import { expiryOf } from './memory'
import type { EngineOptions, Job, Resident, Stats } from './work'

/** How long a collapsed request keeps its random speed, in simulated ms. */
const CHAOS_MS = 200
const CHAOS_MIN = 0.2
const CHAOS_MAX = 0.6

export interface Runner {
  join(resident: Resident, job: Job): void
  /** The client left. Frees the slot, unless the engine has not noticed yet. */
  leave(resident: Resident, job: Job): void
  running(model?: string): number
  peak(model?: string): number
}

/** Slots and speeds: runs what fits, keeps the rest in order of arrival. */
export const createRunner = (
  options: EngineOptions,
  residents: readonly Resident[],
  settle: (resident: Resident) => void,
): Runner => {
  const { wheel, faults, random } = options
  const peaks = new Map<string, number>()
  const speeds = new Map<Job, number>()
  let peak = 0
  let chaosUntil = 0

  const running = (model?: string): number =>
    residents.reduce((sum, each) => sum + (model === undefined || each.model.name === model ? each.running.size : 0), 0)

  const fill = (resident: Resident): void => {
    while (resident.running.size < options.slots) {
      const job = resident.waiting.shift()
      if (!job) break
      start(resident, job)
    }
    peak = Math.max(peak, running())
    peaks.set(resident.model.name, Math.max(peaks.get(resident.model.name) ?? 0, resident.running.size))
  }

  const start = (resident: Resident, job: Job): void => {
    job.phase = 'prompt'
    job.work.event('started')
    resident.running.add(job)
    wheel.each(step)
  }

  const touch = (resident: Resident): void => {
    resident.lastUsedAt = wheel.now()
    resident.expiresAt = expiryOf(resident.keepAliveMs, resident.lastUsedAt)
  }

  const free = (resident: Resident, job: Job): void => {
    job.phase = 'over'
    speeds.delete(job)
    resident.running.delete(job)
    touch(resident)
    fill(resident)
    settle(resident)
  }

  const finish = (resident: Resident, job: Job): void => {
    const stats: Stats = {
      promptTokens: job.work.promptTokens,
      tokens: job.produced,
      loadMs: job.loadMs,
      promptMs: job.promptMs,
      decodeMs: job.decodeMs,
      totalMs: wheel.now() - job.since,
    }
    free(resident, job)
    job.work.event('finished')
    job.work.done(stats)
  }

  /** Tokens/s against running alone. */
  const share = (job: Job, count: number): number => {
    const fair = 1 / (1 + options.contention * (count - 1))
    if (count <= options.collapseAbove) return fair
    if (!speeds.has(job)) speeds.set(job, CHAOS_MIN + random() * (CHAOS_MAX - CHAOS_MIN))
    return fair * (speeds.get(job) ?? 1)
  }

  const advance = (resident: Resident, job: Job, elapsedMs: number, factor: number) => {
    let seconds = elapsedMs / 1000
    if (job.phase === 'prompt') {
      const rate = resident.model.prefillPerSecond * factor
      const needed = job.left / rate
      job.left -= seconds * rate
      job.promptMs += Math.min(seconds, needed) * 1000
      if (seconds < needed) return
      seconds -= needed
      job.phase = 'decode'
      job.left = 0
      if (job.abandoned) return free(resident, job)
    }
    if (job.produced >= job.work.tokens) return finish(resident, job)
    const rate = resident.model.decodePerSecond * factor
    const missing = job.work.tokens - job.produced - job.left
    job.left += seconds * rate
    job.decodeMs += Math.min(seconds, missing / rate) * 1000
    const upTo = Math.min(job.work.tokens, job.produced + Math.floor(job.left))
    if (upTo === job.produced) return
    job.left -= upTo - job.produced
    const from = job.produced
    job.produced = upTo
    if (from === 0) job.work.event('first_token')
    // What a slow client does not take holds the engine up, as a full socket does for real ones.
    job.blocked = !job.work.produced(from, upTo)
    if (upTo === job.work.tokens && !isOver(job)) finish(resident, job)
  }

  // A function, since the call before it may have changed the phase behind the compiler's back.
  const isOver = (job: Job): boolean => job.phase === 'over'

  const step = (elapsedMs: number): boolean => {
    const count = running()
    if (count > options.collapseAbove && wheel.now() > chaosUntil) {
      chaosUntil = wheel.now() + CHAOS_MS
      speeds.clear()
    }
    for (const resident of [...residents]) {
      for (const job of [...resident.running]) {
        if (!job.blocked && !isOver(job)) advance(resident, job, elapsedMs, share(job, count))
      }
    }
    return running() > 0
  }

  return {
    running,
    peak: (model) => (model === undefined ? peak : (peaks.get(model) ?? 0)),
    join(resident, job) {
      touch(resident)
      job.phase = 'queued'
      if (job.work.tokens === 0 && job.work.promptTokens === 0) return finish(resident, job)
      resident.waiting.push(job)
      if (resident.running.size >= options.slots) job.work.event('queued')
      fill(resident)
    },
    leave(resident, job) {
      if (job.phase === 'queued') {
        job.phase = 'over'
        resident.waiting.splice(resident.waiting.indexOf(job), 1)
        return settle(resident)
      }
      const target = { path: '', model: resident.model.name, inference: true }
      if (job.phase === 'prompt' && faults.take('linger', target)) job.abandoned = true
      else free(resident, job)
    },
  }
}
