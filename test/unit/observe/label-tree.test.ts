import { expect, test } from 'bun:test'
import { createLabelTree } from '../../../src/observe/label-tree'

const tree = () => createLabelTree(2, (labels) => ({ text: labels.join('/') }))

test('the same values are the same child, and no others', () => {
  const children = tree()
  const child = children.at(['ab', 'c'])

  expect(children.at(['ab', 'c'])).toBe(child)
  expect(children.at(['a', 'bc'])).not.toBe(child)
  expect(children.at(['c', 'ab'])).not.toBe(child)
})

test('an absent value is an empty one', () => {
  const children = tree()

  expect(children.at(['a', undefined])).toBe(children.at(['a', '']))
})

test('no labels at all have one child', () => {
  const children = createLabelTree(0, () => ({}))

  expect(children.at([])).toBe(children.at([]))
})

test('children stand in the order in which they came; one that was deleted comes anew', () => {
  const children = tree()
  for (const labels of [
    ['b', '1'],
    ['a', '1'],
    ['b', '2'],
    ['a', '1'],
  ])
    children.at(labels)
  const kept = children.at(['a', '1'])
  children.deleteWhere((child, labels) => labels[0] === 'b' && child.text !== 'b/2')
  children.at(['b', '1'])

  expect(children.values().map(({ text }) => text)).toEqual(['a/1', 'b/2', 'b/1'])
  expect(children.at(['a', '1'])).toBe(kept)
})
