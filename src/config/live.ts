import type { Config } from '../domain/config'

/** The configuration in force. It is replaced whole, so what is read in one turn belongs together. */
export interface LiveConfig {
  /** Its sections are always those of the version in force: whoever keeps this object sees the next version too. */
  readonly config: Config
  replace(next: Config): void
}

const SECTIONS: Readonly<Record<keyof Config, true>> = {
  server: true,
  auth: true,
  discovery: true,
  nodes: true,
  aliases: true,
  sameModel: true,
  policy: true,
  priorities: true,
  limits: true,
  health: true,
  state: true,
  score: true,
  cost: true,
  metrics: true,
  log: true,
}

export const createLiveConfig = (first: Config): LiveConfig => {
  let current = first
  const getters = Object.keys(SECTIONS).map((section) => [
    section,
    { enumerable: true, get: () => current[section as keyof Config] },
  ])
  return {
    config: Object.freeze(Object.defineProperties({}, Object.fromEntries(getters))) as Config,
    replace: (next) => {
      current = next
    },
  }
}
