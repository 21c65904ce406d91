import { sameModel } from '../../domain/job'
import { expiryOf, isIdle, memoryOf, victimsFor, windowOf } from './memory'
import type { FakeLoad, FakeModel } from './options'
import { createRunner } from './runner'
import type { EngineOptions, Handle, Job, Resident, Work } from './work'

/** The part of an engine that is not HTTP: what is in memory, who runs, who waits, how fast. */
export interface Engine {
  submit(work: Work): Handle
  residents(): readonly Resident[]
  find(model: string): Resident | undefined
  /** In memory at once, without time or place. */
  place(model: FakeModel): void
  /** Leaves memory as soon as it is idle. */
  unload(model: string): void
  running(model?: string): number
  peak(model?: string): number
  interrupted(): number
  readonly loads: FakeLoad[]
  /** The last load of the model failed. */
  hasFailed(model: string): boolean
}

const tooLarge = (needGb: number, haveGb: number): string =>
  `model requires more system memory (${needGb.toFixed(1)} GiB) than is available (${haveGb.toFixed(1)} GiB)`

export const createEngine = (options: EngineOptions): Engine => {
  const { wheel, faults } = options
  const residents: Resident[] = []
  const pending: Job[] = []
  const loads: FakeLoad[] = []
  const failures = new Set<string>()
  let interrupted = 0

  const find = (model: string): Resident | undefined => residents.find((each) => sameModel(each.model.name, model))

  const loadMs = (model: FakeModel): number => model.loadMs ?? (model.sizeGb / options.loadGbPerSecond) * 1000

  const remove = (resident: Resident): void => {
    resident.stay?.()
    const at = residents.indexOf(resident)
    if (at >= 0) residents.splice(at, 1)
  }

  const interrupt = (resident: Resident): void => {
    for (const job of [...resident.running, ...resident.waiting]) {
      job.phase = 'over'
      interrupted += 1
      job.work.event('interrupted')
      job.work.cut()
    }
    resident.running.clear()
    resident.waiting.length = 0
  }

  /** Called whenever a resident may have become idle. */
  const settle = (resident: Resident): void => {
    if (isIdle(resident) && (resident.leaving || resident.keepAliveMs === 0)) remove(resident)
    else if (isIdle(resident)) expireLater(resident)
    pump()
  }

  const expireLater = (resident: Resident): void => {
    resident.stay?.()
    if (!Number.isFinite(resident.expiresAt)) return
    resident.stay = wheel.after(Math.max(0, resident.expiresAt - wheel.now()), () => {
      const target = { path: '', model: resident.model.name, inference: true }
      if (!isIdle(resident) || faults.peek('stale_expiry', target)) return
      // Timers may come a moment early.
      if (wheel.now() < resident.expiresAt) expireLater(resident)
      else {
        remove(resident)
        pump()
      }
    })
  }

  const runner = createRunner(options, residents, settle)

  /** The names that had to leave, or undefined when there is no room now. */
  const makeRoom = (model: FakeModel, needGb: number): string[] | undefined => {
    const old = find(model.name)
    if (old && !isIdle(old)) return undefined
    const others = residents.filter((each) => each !== old)
    const victims = victimsFor(needGb, others, options, faults.peek('evict_busy') !== undefined)
    if (!victims) return undefined
    if (old) remove(old)
    for (const victim of victims) {
      interrupt(victim)
      remove(victim)
    }
    return victims.map((victim) => victim.model.name)
  }

  const fits = (resident: Resident, work: Work): boolean =>
    !resident.leaving &&
    (work.contextTokens === undefined || windowOf(work.model, work.contextTokens) === resident.contextTokens)

  /** Starts the next load if none is under way and there is room. */
  const pump = (): void => {
    const job = pending[0]
    if (!job || residents.some((each) => each.state === 'loading')) return
    const ready = find(job.work.model.name)
    if (ready?.state === 'ready' && fits(ready, job.work)) {
      pending.shift()
      join(ready, job)
      pump()
      return
    }
    const contextTokens = windowOf(job.work.model, job.work.contextTokens)
    const needGb = memoryOf(job.work.model, contextTokens, options.slots)
    if (needGb > options.memoryGb) {
      pending.shift()
      fail(job, tooLarge(needGb, options.memoryGb))
      pump()
      return
    }
    const evicted = makeRoom(job.work.model, needGb)
    if (evicted) load(job.work.model, contextTokens, evicted)
  }

  const addResident = (model: FakeModel, contextTokens: number, state: Resident['state']): Resident => {
    const resident: Resident = {
      model,
      contextTokens,
      memoryGb: memoryOf(model, contextTokens, options.slots),
      state,
      lastUsedAt: wheel.now(),
      expiresAt: expiryOf(options.keepAliveMs, wheel.now()),
      keepAliveMs: options.keepAliveMs,
      leaving: false,
      waiting: [],
      running: new Set(),
    }
    residents.push(resident)
    return resident
  }

  const load = (model: FakeModel, contextTokens: number, evicted: readonly string[]): void => {
    const target = { path: '', model: model.name, inference: true }
    const resident = addResident(model, contextTokens, 'loading')
    loads.push({ at: Date.now(), model: model.name, contextTokens, evicted })
    const ms = loadMs(model)
    wheel.after(ms + (faults.take('slow_load', target)?.ms ?? 0), () => {
      const fault = faults.take('fail_load', target)
      const mine = pending.filter(
        (job) => sameModel(job.work.model.name, model.name) && (fault || fits(resident, job.work)),
      )
      for (const job of mine) pending.splice(pending.indexOf(job), 1)
      if (fault) {
        failures.add(model.name)
        remove(resident)
        for (const job of mine) fail(job, fault.message ?? 'llama runner process has terminated: exit status 2')
      } else {
        failures.delete(model.name)
        resident.state = 'ready'
        for (const job of mine) {
          job.loadMs = ms
          enter(job)
        }
        settle(resident)
      }
      pump()
    })
  }

  const fail = (job: Job, message: string): void => {
    job.phase = 'over'
    job.work.event('failed')
    job.work.failed(message)
  }

  const join = (resident: Resident, job: Job): void => {
    resident.keepAliveMs = job.work.keepAliveMs ?? options.keepAliveMs
    runner.join(resident, job)
  }

  /** Joins its model if that is in memory as wanted, else waits for a load. */
  const enter = (job: Job): void => {
    const resident = find(job.work.model.name)
    if (resident?.state === 'ready' && fits(resident, job.work)) {
      join(resident, job)
      return
    }
    job.work.event('loading')
    pending.push(job)
    pump()
  }

  const residentOf = (job: Job): Resident | undefined =>
    residents.find((each) => each.running.has(job) || each.waiting.includes(job))

  const cancel = (job: Job): void => {
    if (job.phase === 'over') return
    job.work.event('cancelled')
    if (job.phase === 'loading') {
      job.phase = 'over'
      pending.splice(pending.indexOf(job), 1)
      return
    }
    const resident = residentOf(job)
    if (resident) runner.leave(resident, job)
  }

  return {
    loads,
    find,
    residents: () => residents,
    place: (model) => expireLater(addResident(model, windowOf(model), 'ready')),
    submit(work) {
      const job: Job = {
        work,
        since: wheel.now(),
        phase: 'loading',
        left: work.promptTokens,
        produced: 0,
        blocked: false,
        abandoned: false,
        loadMs: 0,
        promptMs: 0,
        decodeMs: 0,
      }
      enter(job)
      return {
        cancel: () => cancel(job),
        resume: () => {
          job.blocked = false
        },
      }
    },
    unload(model) {
      const resident = find(model)
      if (!resident) return
      resident.leaving = true
      settle(resident)
    },
    running: (model) => runner.running(model),
    peak: (model) => runner.peak(model),
    interrupted: () => interrupted,
    hasFailed: (model) => failures.has(model),
  }
}
