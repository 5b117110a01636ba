import { expect, test } from 'vitest'

import type { Run } from './compared-runs'
import { columnsOf, curveOf, meanCurve, overlayTable } from './curves'

const START = Date.parse('2026-11-21T12:00:00Z')

function run(values: Record<number, number>, seconds: number): Run {
  const points = Object.entries(values).map(([round, value]) => ({
    round: Number(round),
    value,
    time: new Date(START + Number(round) * seconds * 1000).toISOString(),
    bytes_up: Number(round) * 100,
  }))
  const experiment = { started_at: null, created_at: new Date(START).toISOString() } as Run['experiment']
  return { id: 'exp_1', place: 0, experiment, series: [{ name: 'eval_loss', points }] }
}

function entry(...runs: [Run, ...Run[]]) {
  return { key: 'exp_1', place: 0, label: 'one', runs }
}

test('a run is drawn over rounds, over the time since its own start, or over bytes', () => {
  const one = entry(run({ 0: 3, 2: 1 }, 10))
  const xs = (axis: 'round' | 'time' | 'bytes') => curveOf(one, 'eval_loss', axis).map(({ x }) => x)
  expect([xs('round'), xs('time'), xs('bytes')]).toEqual([
    [0, 2],
    [0, 20],
    [0, 200],
  ])
  expect(curveOf(one, 'rouge_l', 'round')).toEqual([])
})

test('a group is the mean at its mean time, in rounds that all of them have', () => {
  const group = entry(run({ 0: 3, 1: 1, 2: 0.5 }, 10), run({ 0: 3, 1: 2 }, 20), run({}, 1))
  expect(curveOf(group, 'eval_loss', 'time')).toEqual([
    { round: 0, x: 0, value: 3, sd: 0 },
    { round: 1, x: 15, value: 1.5, sd: Math.SQRT1_2 },
  ])
  expect(meanCurve([])).toEqual([])
})

test('curves share their x; gaps are null', () => {
  const a = [
    { round: 0, x: 0, value: 3 },
    { round: 1, x: 10, value: 2 },
  ]
  const b = [{ round: 1, x: 5, value: 1, sd: 0.25 }]
  expect(columnsOf([a, b], false)).toEqual({
    x: [0, 5, 10],
    smooth: [],
    values: [
      [3, null, 2],
      [null, 1, null],
    ],
    low: [
      [null, null, null],
      [null, 0.75, null],
    ],
    high: [
      [null, null, null],
      [null, 1.25, null],
    ],
    rounds: [
      [0, null, 1],
      [null, 1, null],
    ],
  })
})

test('a logarithm leaves out what it cannot draw', () => {
  const curve = [
    { round: 0, x: 0, value: 0 },
    { round: 1, x: 1, value: 2, sd: 3 },
  ]
  const { x, values, low } = columnsOf([curve], true)
  expect([x, values, low]).toEqual([[1], [[2]], [[2]]])
})

test('a point for several rounds has bounds, smoothed values are next to it', () => {
  const thinned = run({ 4: 2, 8: 1 }, 10)
  const points = thinned.series[0]?.points.map((point) => ({ ...point, count: 4, least: 0.5, greatest: 3 })) ?? []
  const curve = curveOf(entry({ ...thinned, series: [{ name: 'eval_loss', points }] }), 'eval_loss', 'round')
  const columns = columnsOf([curve], false, 'light')
  expect([columns.low, columns.high]).toEqual([[[0.5, 0.5]], [[3, 3]]])
  expect(columns.smooth).toEqual([[2, expect.closeTo(4 / 3)]])
})

test('a value that is not a number has no point in a curve', () => {
  const lost = run({ 0: 3, 1: 2 }, 10)
  const points = lost.series[0]?.points.map((point) => ({ ...point, value: point.round === 1 ? null : point.value }))
  expect(
    curveOf(entry({ ...lost, series: [{ name: 'eval_loss', points: points ?? [] }] }), 'eval_loss', 'round'),
  ).toEqual([{ round: 0, x: 0, value: 3 }])
})

test('rows are rounds, whatever the chart’s axis; a group has a column more', () => {
  const { names, data } = overlayTable([
    { label: 'a', curve: [{ round: 1, x: 900, value: 3 }] },
    {
      label: 'b (2 seeds)',
      curve: [
        { round: 0, x: 0, value: 4, sd: 0 },
        { round: 1, x: 70, value: 2, sd: 0.5 },
      ],
    },
  ])
  expect(names).toEqual(['a', 'b (2 seeds)', 'b (2 seeds), sd'])
  expect(data.rounds).toEqual([0, 1])
  expect(data.lines).toEqual([
    [undefined, 3],
    [4, 2],
    [0, 0.5],
  ])
})
