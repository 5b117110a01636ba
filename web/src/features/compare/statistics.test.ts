import { expect, test } from 'vitest'

import { median, stat } from './statistics'

test('mean and standard deviation of a sample; what is missing does not count', () => {
  expect(stat([1, undefined, 3])).toEqual({ mean: 2, sd: Math.SQRT2, count: 2 })
})

test('one value has no deviation, none has no mean', () => {
  expect(stat([7])).toEqual({ mean: 7, sd: undefined, count: 1 })
  expect(stat([undefined])).toBeUndefined()
})

test('the median is the middle, or the mean of the two around it', () => {
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([5]), median([])]).toEqual([2, 2.5, 5, undefined])
})
