/**
 * `node scripts/test.mjs [--slow] [bun test arguments]` runs the tests and ends with one line of counts.
 * Without a path: all of test/ but test/slow. Tests that need a real engine or the Python clients are skipped, with the
 * reason shown, where there are none (see scripts/engine.sh and scripts/python-clients.sh).
 */
import { ensureInstalled, runBun } from './toolchain.mjs'

ensureInstalled()
const given = process.argv.slice(2)
const slow = given.includes('--slow')
const extra = given.filter((argument) => argument !== '--slow')

let report = ''
const code = await runBun(['test', ...(slow ? [] : ['--path-ignore-patterns=test/slow/**']), ...extra], {
  // A pipe hides the terminal from Bun; colours are wanted where people read.
  env: process.stderr.isTTY && !process.env.NO_COLOR ? { FORCE_COLOR: '1' } : {},
  onError: (piece) => {
    report += piece
  },
})

/** The last count that Bun printed under this word, 0 when it printed none. */
const count = (word) => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
  const plain = report.replace(/\u001b\[[0-9;]*m/g, '')
  const found = [...plain.matchAll(new RegExp(`^ *(\\d+) ${word}s?$`, 'gm'))].at(-1)
  return found ? Number(found[1]) : 0
}

const failed = count('fail')
console.log(
  `${count('pass')} passed, ${code === 0 ? failed : Math.max(failed, 1)} failed, ${count('skip') + count('todo')} skipped`,
)
process.exitCode = code
