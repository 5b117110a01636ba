import { expect, test } from 'vitest'

import { median } from './median'

test.each([
  [[], undefined],
  [[3], 3],
  [[30, 2, 3], 3],
  [[4, 1, 2, 10], 3],
])('median of %j is %s', (values, expected) => {
  expect(median(values)).toBe(expected)
})
