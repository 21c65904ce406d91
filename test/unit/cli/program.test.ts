import { expect, test } from 'bun:test'
import { programName } from '../../../src/cli/program'

const running = { isSource: false, execPath: '/home/me/fleet/dist/fleet', cwd: '/home/me/fleet', onPath: null }

test.each([
  ['from a clone', { isSource: true }, 'npm run -s fleet --'],
  ['below the current folder', {}, './dist/fleet'],
  ['elsewhere', { cwd: '/srv' }, '/home/me/fleet/dist/fleet'],
  ['where the shell finds it', { onPath: '/home/me/fleet/dist/fleet' }, 'fleet'],
  ['where the shell finds another one', { onPath: '/usr/bin/fleet' }, './dist/fleet'],
])('the program %s', (_, change, expected) => {
  expect(programName({ ...running, ...change })).toBe(expected)
})
