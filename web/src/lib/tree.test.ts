import { expect, test } from 'vitest'

import { pruned, valueAt, withValue } from './tree'

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
