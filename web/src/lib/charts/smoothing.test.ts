import { expect, test } from 'vitest'

import { smoothed } from './smoothing'

test('the first value is itself, later ones follow slowly', () => {
  expect(smoothed([4, 1], 'light')).toEqual([4, 2])
  const [first, second] = smoothed([4, 1], 'strong')
  expect(first).toBeCloseTo(4)
  expect(second).toBeGreaterThan(2.4)
})

test('a constant line stays as it is, and what is missing stays missing', () => {
  const line = smoothed([2, null, 2, undefined, 2], 'medium')
  expect(line.map((value) => (typeof value === 'number' ? Number(value.toFixed(9)) : value))).toStrictEqual([
    2,
    null,
    2,
    undefined,
    2,
  ])
})
