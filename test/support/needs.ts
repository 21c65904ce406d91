/** Tests of what not every machine has. */
import { describe, test } from 'bun:test'

/**
 * A `describe` whose tests are skipped, with the reason printed, where something is missing; they fail where
 * FLEET_REQUIRE_ENGINE is set.
 */
export const describeUnless = (missing: string | undefined, name: string, body: () => void): void => {
  if (missing === undefined) {
    describe(name, body)
  } else if (process.env.FLEET_REQUIRE_ENGINE) {
    test(name, () => {
      throw new Error(`FLEET_REQUIRE_ENGINE is set, but ${missing}`)
    })
  } else {
    console.error(`skipped: ${name} (${missing})`)
    describe.skipIf(true)(name, body)
  }
}

/** What a script that makes something once prints where it was made: its lines, or why there is none. Makes nothing. */
export const madeBy = (script: string): { readonly lines: readonly string[] } | { readonly missing: string } => {
  if (!Bun.which('bash')) return { missing: 'no bash found' }
  const { success, stdout, stderr } = Bun.spawnSync(['bash', script, '--ready'])
  if (success) return { lines: stdout.toString().trim().split('\n') }
  // Scripts say their own name in front.
  const reason = stderr.toString().replace(/^[\w-]+: /, '')
  return { missing: reason.trim() }
}
