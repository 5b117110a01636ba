import { expect, test } from 'vitest'

import type { Entry, Run } from './compared-runs'
import { frontierPoints, paretoFront } from './frontier'
import { metricOf } from './metric'

function entry(key: string, values: { eval_loss?: number[]; bytes_up?: number[] }, total = 0): Entry {
  const series = Object.entries(values).map(([name, all]) => ({
    name,
    points: all.map((value, index) => ({ round: index + 1, value, time: '', bytes_up: 0 })),
  }))
  const experiment = { participants: 2, bytes_up: total, spec: { participants: { fraction: 1 } } } as Run['experiment']
  return { key, place: 0, label: key, runs: [{ id: key, place: 0, experiment, series }] }
}

const LOSS = { ...metricOf('eval_loss'), better: 'low' as const }
const ENTRIES = [
  entry('dear', { eval_loss: [2, 1], bytes_up: [2000, 2000] }, 4000),
  entry('cheap', { eval_loss: [3, 2], bytes_up: [20] }, 20),
  entry('beaten', { eval_loss: [3], bytes_up: [4000] }, 100),
  entry('without metrics', {}, 100),
]

test('points come by bytes, the front is marked, and who has no figure is left out', () => {
  const points = frontierPoints(ENTRIES, LOSS, { way: 'up', total: false })
  expect(points.map((point) => [point.entry.key, point.bytes, point.best.mean, point.onFront])).toEqual([
    ['cheap', 10, 2, true],
    ['dear', 1000, 1, true],
    ['beaten', 2000, 3, false],
  ])
})

test('in all instead of each, and received instead of sent', () => {
  const total = frontierPoints(ENTRIES, LOSS, { way: 'up', total: true })
  expect(total.map(({ bytes }) => bytes)).toEqual([20, 100, 4000])
  expect(frontierPoints(ENTRIES, LOSS, { way: 'down', total: false })).toEqual([])
})

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

test('one point is the frontier, no points have none', () => {
  expect(paretoFront([{ x: 1, y: 1 }], 'high')).toEqual([0])
  expect(paretoFront([], 'high')).toEqual([])
})
