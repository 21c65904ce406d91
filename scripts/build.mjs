/**
 * `node scripts/build.mjs [--target=bun-linux-arm64] [--outfile=dist/fleet-arm64]` builds the executable: one file that
 * needs nothing installed. Without arguments: dist/fleet for this machine.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureInstalled, manifest, root, runBun } from './toolchain.mjs'

const { values } = parseArgs({
  options: { target: { type: 'string' }, outfile: { type: 'string', default: 'dist/fleet' } },
})

/** Short hash of the commit, with `+` when the tree differs from it; `unknown` outside a repository. */
const commit = () => {
  try {
    const git = (...args) =>
      execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    return git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+')
  } catch {
    return 'unknown'
  }
}

ensureInstalled()
const code = await runBun(
  [
    'build',
    'src/main.ts',
    // A thread's code has to be named, for nothing imports it.
    'src/checkpoint-worker.ts',
    '--compile',
    '--minify-syntax',
    '--minify-whitespace',
    '--bytecode',
    '--format=esm',
    '--no-compile-autoload-dotenv',
    '--no-compile-autoload-bunfig',
    `--define=FLEET_VERSION=${JSON.stringify(manifest.version)}`,
    `--define=FLEET_COMMIT=${JSON.stringify(commit())}`,
    ...(values.target ? [`--target=${values.target}`] : []),
    `--outfile=${values.outfile}`,
  ],
  // Without it Bun bundles the development builds of packages.
  { env: { NODE_ENV: 'production' } },
)
if (code === 0) {
  const file = [values.outfile, `${values.outfile}.exe`].find((name) => existsSync(resolve(root, name)))
  console.log(`${file}  ${(statSync(resolve(root, file)).size / 1e6).toFixed(1)} MB`)
}
process.exitCode = code
