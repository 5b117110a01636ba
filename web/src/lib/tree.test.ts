import { expect, test } from 'vitest'

import { flatten, pruned, valueAt, withValue } from './tree'

const TREE = { a: { b: { c: 1 } }, d: 2 }

test('a value is found, set and taken away at its path', () => {
  expect(valueAt(TREE, ['a', 'b', 'c'])).toBe(1)
  expect(valueAt(TREE, ['d', 'e'])).toBeUndefined()
  expect(withValue(TREE, ['a', 'x'], 3)).toEqual({ a: { b: { c: 1 }, x: 3 }, d: 2 })
  expect(withValue(TREE, ['d', 'e'], 3)).toEqual({ a: { b: { c: 1 } }, d: { e: 3 } })
  expect(withValue(TREE, ['a', 'b', 'c'], undefined)).toEqual({ d: 2 })
  expect(TREE.a.b.c).toBe(1)
})

test('empty tables go', () => {
  expect(pruned({ a: { b: {} }, c: [], d: { e: null } })).toEqual({ c: [], d: { e: null } })
})

test('nested fields become dotted paths', () => {
  expect(
    flatten({ rounds: 5, algorithm: { name: 'ferret', local: { clip: null } }, labels: [1, 2], on: true }),
  ).toEqual([
    ['rounds', '5'],
    ['algorithm.name', 'ferret'],
    ['algorithm.local.clip', 'unset'],
    ['labels', '[1,2]'],
    ['on', 'true'],
  ])
})
