import { expect, test } from 'vitest'

import { linearRange, logRange, logTicks, plainTick } from './axes'

test('a logarithm spans the positive values with room, even around one', () => {
  const [low, high] = logRange([100, 10_000, 0, -3])
  expect(low).toBeLessThan(100)
  expect(high).toBeGreaterThan(10_000)
  expect(logRange([100])).toEqual([100 / 1.1, 100 * 1.1])
  expect(logRange([])).toEqual([1, 10])
})

test('an even scale spans the values with room, or begins at 0', () => {
  expect(linearRange([1, 2], false)).toEqual([0.92, 2.08])
  expect(linearRange([1, 2], true)).toEqual([0, 2.16])
  expect(linearRange([5], false)).toEqual([4.6, 5.4])
  expect(linearRange([0], true)).toEqual([0, 0.08])
  expect(linearRange([], true)).toEqual([0, 1])
})

test('ticks of a logarithm are round numbers', () => {
  expect(logTicks(3000, 8e6)).toEqual([1e4, 1e5, 1e6])
  expect(logTicks(7, 300)).toEqual([10, 20, 50, 100, 200])
  expect(logTicks(1.27, 2.8)).toEqual([1.5, 2, 2.5])
  expect(logTicks(0.9, 1.1)).toEqual([0.9, 0.95, 1, 1.05, 1.1])
  expect(logTicks(1, 1e12)).toEqual([1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
})

test('ticks have four digits at most', () => {
  expect([plainTick(2.7000000000000002), plainTick(12345)]).toEqual(['2.7', '12350'])
})
