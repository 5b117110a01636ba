import { expect, test } from 'vitest'

import { allPositive, logRange, logRangeOf, logTicks, positiveRange } from './log-scale'

test.each([
  [
    [
      [7.5, 0.2],
      [undefined, 4],
    ],
    true,
  ],
  [[[7.5, 0]], false],
  [[[null]], false],
  [[], false],
])('allPositive(%j) is %s', (lines, positive) => {
  expect(allPositive(lines)).toBe(positive)
})

test('a range leaves room, more for a single value', () => {
  const [low, high] = logRange(0.25, 7.5)
  expect(low).toBeLessThan(0.25)
  expect(low).toBeGreaterThan(0.15)
  expect(high).toBeGreaterThan(7.5)
  expect(logRange(3, 3)).toEqual([1.5, 6])
  expect(logRangeOf([7.5, 0, -3, 0.25])).toEqual(logRange(0.25, 7.5))
  expect(logRangeOf([])).toEqual([1, 10])
})

test('a range that a logarithm cannot show begins at the first positive value', () => {
  expect(positiveRange([2, 8], 1)).toEqual([2, 8])
  expect(positiveRange([0, 8], 1)).toEqual([1, 8])
  expect(positiveRange([-1, 1], 1)).toEqual(logRange(1, 1))
})

test.each([
  [0.2, 9, [0.2, 0.5, 1, 2, 5]],
  [0.001, 2000, [0.001, 0.1, 10, 1000]],
  [3.75, 15, [4, 6, 8, 10, 12, 14]],
  [1.9, 3.2, [2, 2.5, 3]],
  [0.9, 1.1, [0.9, 0.95, 1, 1.05, 1.1]],
  [7, 300, [10, 30, 100, 300]],
  [1, 1e12, [1, 1e3, 1e6, 1e9, 1e12]],
  [0.02, 9, [0.03, 0.1, 0.3, 1, 3]],
])('ticks from %d to %d', (low, high, ticks) => {
  expect(logTicks(low, high)).toEqual(ticks)
})
