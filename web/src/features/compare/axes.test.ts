import { expect, test } from 'vitest'

import { linearRange } from './axes'

test('an even scale spans the values with room, or begins at 0', () => {
  expect(linearRange([1, 2], false)).toEqual([0.92, 2.08])
  expect(linearRange([1, 2], true)).toEqual([0, 2.16])
  expect(linearRange([5], false)).toEqual([4.6, 5.4])
  expect(linearRange([0], true)).toEqual([0, 0.08])
  expect(linearRange([], true)).toEqual([0, 1])
})
