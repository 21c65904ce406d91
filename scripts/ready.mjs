/** `node scripts/ready.mjs`: what has to hold before a commit. Format and lint, types, tests; stops at the first failure. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './toolchain.mjs'

const steps = [
  ['format and lint', 'run.mjs', 'x', 'biome', 'check'],
  ['types', 'run.mjs', 'x', 'tsc', '--noEmit'],
  ['tests', 'test.mjs'],
]

for (const [name, script, ...args] of steps) {
  console.error(`\n== ${name}`)
  const { status } = spawnSync(process.execPath, [join(root, 'scripts', script), ...args], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) {
    console.error(`\nNot ready: ${name} failed.`)
    process.exit(status ?? 1)
  }
}
