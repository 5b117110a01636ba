import { expect, test } from 'vitest'

import { keyTarget } from './roving-focus'

test.each([
  ['ArrowRight', 0, 1],
  ['ArrowRight', 5, 0],
  ['ArrowLeft', 0, 5],
  ['Home', 3, 0],
  ['End', 3, 5],
  ['a', 3, undefined],
])('%s from %d leads to %s of six', (key, index, target) => {
  expect(keyTarget(key, index, 6)).toBe(target)
})
