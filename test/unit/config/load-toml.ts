import { type LoadedConfig, loadConfig } from '../../../src/config/load'
import { renderProblems } from '../../../src/config/render'

type Env = Readonly<Record<string, string>>

export interface World {
  readonly env?: Env
  readonly flags?: Env
  readonly secrets?: Env
}

/** Loads the text as `fleet.toml`, with these variables, flags and key files. */
export const loadToml = (text: string, { env = {}, flags = {}, secrets = {} }: World = {}): LoadedConfig =>
  loadConfig({
    file: { path: 'fleet.toml', text },
    env,
    flags,
    readSecret: (path) => {
      const secret = secrets[path]
      if (secret === undefined) throw new Error(`ENOENT: ${path}`)
      return secret
    },
  })

/** What a person would read about the text. */
export const complaints = (text: string, world?: World): string => renderProblems(loadToml(text, world).problems, text)
