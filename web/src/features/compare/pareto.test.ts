import { expect, test } from 'vitest'

import { paretoFront } from './pareto'

const POINTS = [
  { x: 100, y: 2.0 },
  { x: 10, y: 2.5 },
  { x: 50, y: 2.6 },
  { x: 1000, y: 1.5 },
]

test('who is beaten in both is not on the front', () => {
  expect(paretoFront(POINTS, 'low')).toEqual([1, 0, 3])
  expect(paretoFront(POINTS, 'high')).toEqual([1, 2])
})

test('of equal bytes the better one counts, of equal quality the cheaper', () => {
  expect(
    paretoFront(
      [
        { x: 10, y: 3 },
        { x: 10, y: 2 },
        { x: 20, y: 2 },
      ],
      'low',
    ),
  ).toEqual([1])
})

test('one point is the front, none is none', () => {
  expect(paretoFront([{ x: 1, y: 1 }], 'high')).toEqual([0])
  expect(paretoFront([], 'high')).toEqual([])
})
