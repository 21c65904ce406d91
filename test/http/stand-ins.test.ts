import { expect, test } from 'bun:test'
import { standInsOf } from '../../src/http/stand-ins'
import { host } from './harness'

test.each([
  [null, []],
  ['', []],
  [' , ,', []],
  ['a, b:7b ,org/c@q4', ['a', 'b:7b', 'org/c@q4']],
  ['%E5%90%8D%E5%89%8D:7b', ['名前:7b']],
  ['100%, a%20b', ['100%', 'a b']],
  [Array(40).fill('m').join(','), Array(16).fill('m')],
  ['x'.repeat(500), ['x'.repeat(256)]],
])('%p names %p', (value, names) => {
  expect(standInsOf(value)).toEqual(names)
})

test('the job carries them, and nothing when there are none', async () => {
  const { chat, jobs } = host()

  await chat({ 'x-fleet-fallback': 'a, b' })
  await chat()

  expect(jobs.map(({ fallback }) => fallback)).toEqual([['a', 'b'], undefined])
})
