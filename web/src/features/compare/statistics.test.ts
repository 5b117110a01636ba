import { expect, test } from 'vitest'

import { stat } from './statistics'

test('mean and standard deviation of a sample; what is missing does not count', () => {
  expect(stat([1, undefined, 3])).toEqual({ mean: 2, sd: Math.SQRT2, count: 2 })
})

test('one value has no deviation, none has no mean', () => {
  expect(stat([7])).toEqual({ mean: 7, sd: undefined, count: 1 })
  expect(stat([undefined])).toBeUndefined()
})
