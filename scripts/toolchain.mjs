/** What every script stands on: the pinned Bun and the locked packages, installed on first use. Plain Node, no packages. */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const windows = process.platform === 'win32'
const bun = join(root, 'node_modules', '.bin', windows ? 'bun.exe' : 'bun')
const stampFile = join(root, 'node_modules', '.installed-for')
const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP']
/** One Ctrl-C arrives twice, from the terminal and from npm; the child is to hear it once. */
const sameSignalMs = 500

/** Names what node_modules has to hold: changes whenever a package or its version does. */
const wanted = () =>
  createHash('sha256')
    .update(JSON.stringify([manifest.dependencies, manifest.devDependencies]))
    .update(readFileSync(join(root, 'bun.lock')))
    .digest('hex')

/** Installs the locked packages where they are missing or not those of bun.lock. Ends the process when that fails. */
export const ensureInstalled = () => {
  const stamp = wanted()
  if (existsSync(bun) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return
  const pinned = `bun@${manifest.devDependencies.bun}`
  console.error(`Installing packages (${pinned}, bun.lock) ...`)
  const install = spawnSync('npx', ['-y', pinned, 'install', '--frozen-lockfile'], {
    cwd: root,
    // stdout belongs to whoever reads the command that was asked for.
    stdio: ['ignore', 2, 2],
    shell: windows,
  })
  if (install.status !== 0) {
    console.error(`\nThe packages could not be installed. By hand: npx -y ${pinned} install --frozen-lockfile`)
    process.exit(1)
  }
  writeFileSync(stampFile, stamp)
}

/**
 * Runs Bun with these arguments and resolves to its exit code, 128 + n when signal n ended it.
 * Bun leads a process group of its own, so that each signal reaches it through here and once; `--no-orphans` takes it
 * down when this process is killed. `onError` receives what Bun writes to stderr, which is shown all the same.
 */
export const runBun = (args, { env = {}, onError } = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(bun, ['--no-orphans', ...args], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['inherit', 'inherit', onError ? 'pipe' : 'inherit'],
      detached: !windows,
    })
    child.stderr?.on('data', (piece) => {
      process.stderr.write(piece)
      onError(piece)
    })
    const last = {}
    for (const signal of forwarded) {
      process.on(signal, () => {
        const now = performance.now()
        if (now - (last[signal] ?? -sameSignalMs) < sameSignalMs) return
        last[signal] = now
        child.kill(signal)
      })
    }
    child.on('error', reject)
    child.on('close', (code, signal) => resolve(code ?? 128 + signalNumber(signal)))
  })

const signalNumber = (signal) => ({ SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 })[signal] ?? 0
