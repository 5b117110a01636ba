import { afterEach, expect, test, vi } from 'vitest'

import { backOff, politeInterval } from './back-off'

afterEach(() => {
  vi.restoreAllMocks()
})

test('waits grow up to half a minute', () => {
  expect([0, 1, 2, 3, 20].map((failures) => backOff(failures, () => 0))).toEqual([5000, 10_000, 20_000, 30_000, 30_000])
})

test('browsers come back at different instants, none later than its wait', () => {
  expect(backOff(0, () => 1)).toBe(3750)
})

test('a successful query keeps its pace, a failing one backs off', () => {
  const lost = { status: 'error', dataUpdatedAt: 100_000, errorUpdateCount: 9 }
  expect(politeInterval({ ...lost, status: 'success' }, 5000, 900_000)).toBe(5000)
  expect([101_000, 105_000, 112_000, 900_000].map((now) => politeInterval(lost, 5000, now))).toEqual([
    5000, 5000, 12_000, 30_000,
  ])
})

test('a query that never succeeded backs off from its first failure', () => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const waits = [1, 2, 3, 4].map((errorUpdateCount) =>
    politeInterval({ status: 'error', dataUpdatedAt: 0, errorUpdateCount }, 5000),
  )
  expect(waits).toEqual([5000, 10_000, 20_000, 30_000])
})
