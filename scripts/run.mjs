/** `node scripts/run.mjs ARGS` is `bun ARGS` with the pinned Bun, after installing what is missing. */
import { ensureInstalled, runBun } from './toolchain.mjs'

ensureInstalled()
process.exitCode = await runBun(process.argv.slice(2))
