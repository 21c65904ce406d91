import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CODES, FILE, render } from '../../../scripts/protocols'

test('the page of errors in the repository is the one that the code makes', () => {
  expect(readFileSync(join(import.meta.dir, '../../..', FILE), 'utf8')).toBe(render())
})

test('every error has its row', () => {
  for (const code of CODES) expect(render()).toContain(`\n| \`${code}\` | `)
})
