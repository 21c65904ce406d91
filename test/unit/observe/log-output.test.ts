import { expect, test } from 'bun:test'
import { join } from 'node:path'

const output = join(import.meta.dir, '../../../src/observe/log-output.ts')

const linesOf = async (program: string): Promise<string[]> => {
  const child = Bun.spawn([process.execPath, '-e', `import { standardOutput } from '${output}'\n${program}`], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const text = await new Response(child.stdout).text()
  return text.split('\n').slice(0, -1)
}

test('lines of one moment are written, in order, also when the process ends at once', async () => {
  const lines = await linesOf(
    `for (let i = 0; i < 1_000; i++) standardOutput().write('line ' + i + '\\n'); process.exit(0)`,
  )

  expect(lines).toEqual(Array.from({ length: 1_000 }, (_, i) => `line ${i}`))
})

test('lines are written although the program goes on', async () => {
  const lines = await linesOf(`standardOutput().write('now\\n'); setTimeout(() => process.kill(process.pid, 9), 300)`)

  expect(lines).toEqual(['now'])
})

test('what an uncaught error leaves behind is written', async () => {
  const lines = await linesOf(`standardOutput().write('last words\\n'); throw undefined`)

  expect(lines).toEqual(['last words'])
})

test('a reader that is slow gets every line', async () => {
  const child = Bun.spawn(
    [
      'sh',
      '-c',
      `"$0" -e "$1" | { sleep 0.2; wc -c; }`,
      process.execPath,
      `import { standardOutput } from '${output}'
       // Whoever asks makes a pipe one that refuses what it has no room for.
       process.stdout.isTTY
       for (let i = 0; i < 1_000; i++) standardOutput().write('x'.repeat(999) + '\\n')
       process.exit(0)`,
    ],
    { stdout: 'pipe', stderr: 'inherit' },
  )

  expect(Number(await new Response(child.stdout).text())).toBe(1_000_000)
})

test('a reader that goes away does not end the program', async () => {
  const child = Bun.spawn(
    [
      'sh',
      '-c',
      `{ "$0" -e "$1"; echo "ended with $?" >&2; } | head -n 1`,
      process.execPath,
      `import { standardOutput } from '${output}'
       standardOutput().write('first\\n')
       setTimeout(() => standardOutput().write('nobody reads this\\n'), 200)
       setTimeout(() => process.exit(7), 400)`,
    ],
    { stdout: 'pipe', stderr: 'pipe' },
  )

  expect(await new Response(child.stdout).text()).toBe('first\n')
  expect(await new Response(child.stderr).text()).toBe('ended with 7\n')
})

test('a reader that stands still stops nobody; what it never got is counted', async () => {
  const child = Bun.spawn(
    [
      'sh',
      '-c',
      `"$0" -e "$1" | { sleep 1; wc -l; }`,
      process.execPath,
      `import { standardOutput } from '${output}'
       process.stdout.isTTY
       const began = performance.now()
       const out = standardOutput()
       for (let i = 0; i < 10_000; i++) out.write('x'.repeat(999) + '\\n')
       const tookMs = performance.now() - began
       const whileStalled = out.dropped()
       setTimeout(() => {
         console.error(JSON.stringify({ tookMs, whileStalled, later: out.dropped() }))
         process.exit(0)
       }, 1_800)`,
    ],
    { stdout: 'pipe', stderr: 'pipe' },
  )

  const got = Number(await new Response(child.stdout).text())
  const told = JSON.parse(await new Response(child.stderr).text())
  expect(told.tookMs).toBeLessThan(900)
  expect(told.whileStalled).toBe(0)
  expect(told.later).toBeGreaterThan(5_000)
  expect(got + told.later).toBe(10_000)
})
