import { expect, test } from 'vitest'

import { bestIndex, chartDataFromSeries, type Choices, CONVERGENCE, COST } from './chart-definitions'

const START = '2026-11-21T12:00:00Z'
const USUAL: Choices = { axis: 'round', linear: false, logX: false, smoothing: undefined }

function series(name: string, values: Record<number, number>) {
  const points = Object.entries(values).map(([round, value]) => ({
    round: Number(round),
    value,
    time: START,
    bytes_up: Number(round) * 100,
  }))
  return { name, points }
}

const METRICS = [
  series('eval_loss', { 0: 2.7, 1: 1.5, 2: 1.8 }),
  series('train_loss', { 1: 2, 2: 1.9 }),
  series('bytes_up', { 1: 100, 2: 50 }),
  series('bytes_down', { 1: 900, 2: 900 }),
]

function panel(testId: string, metrics = METRICS, choices: Partial<Choices> = {}) {
  const found = chartDataFromSeries(CONVERGENCE, metrics, START, { ...USUAL, ...choices }).panels.find(
    (drawn) => drawn.testId === testId,
  )
  if (found === undefined) throw new Error(`no panel ${testId}`)
  return found
}

test('measured values have a panel, missing ones a reason', () => {
  const { panels, missing } = chartDataFromSeries(CONVERGENCE, METRICS, START, USUAL)
  expect(panels.map(({ testId }) => testId)).toEqual(['chart-loss', 'chart-bytes'])
  expect(panels.map(({ unit }) => unit)).toEqual(['nats per token', 'all participants'])
  expect(missing.map(({ title }) => title)).toEqual(['Rouge-L'])
})

test('a logarithmic axis begins at the first round, and nothing that it cannot show is in its range', () => {
  const range = (choices: Partial<Choices>) =>
    chartDataFromSeries(CONVERGENCE, METRICS, START, { ...USUAL, logX: true, ...choices }).range
  expect(range({})).toEqual([1, 2])
  expect(range({ axis: 'bytes' })).toEqual([100, 1000])
  expect(range({ zoom: [0, 1.5] })).toEqual([1, 1.5])
  expect(range({ zoom: [1.2, 1.5] })).toEqual([1.2, 1.5])
})

test('a metric without a value has no panel', () => {
  const { panels, missing, range } = chartDataFromSeries(CONVERGENCE, [], START, USUAL)
  expect(panels).toEqual([])
  expect(missing.map(({ title }) => title)).toEqual(['Loss', 'Rouge-L', 'Bytes, cumulative'])
  expect(range).toEqual([0, 1])
})

test.each(['exact_match', 'projection_noise'])('%s has a panel where it is measured', (name) => {
  expect(panel(`chart-${name}`, [series(name, { 0: 4.2, 1: 12.5 })]).data.lines).toEqual([[4.2, 12.5]])
})

test('train and evaluation loss share a panel, the base model at 0, base and best marked', () => {
  const { data, marks } = panel('chart-loss')
  expect(data).toStrictEqual({
    x: [0, 1, 2],
    rounds: [0, 1, 2],
    lines: [
      [undefined, 2, 1.9],
      [2.7, 1.5, 1.8],
    ],
  })
  expect(marks).toEqual([
    { line: 1, index: 0, text: 'base' },
    { line: 1, index: 1, text: 'best' },
  ])
})

test('the base model alone is not the best', () => {
  expect(panel('chart-loss', [series('eval_loss', { 0: 2.7 })]).marks.map(({ text }) => text)).toEqual(['base'])
})

test('losses are logarithmic where all are positive, unless a reader wants them linear', () => {
  expect(panel('chart-loss').log).toBe(true)
  expect(panel('chart-loss', METRICS, { linear: true }).log).toBe(false)
  expect(panel('chart-loss', [series('eval_loss', { 0: 2.7, 1: 0 })]).log).toBe(false)
  expect(panel('chart-bytes').log).toBe(false)
})

test('bytes are running totals, sent and received, and never smoothed', () => {
  const { data, smooth } = panel('chart-bytes', METRICS, { smoothing: 'light' })
  expect(data.lines).toEqual([
    [100, 150],
    [900, 1800],
  ])
  expect(smooth).toEqual([])
})

test('a smoothed line is next to each line', () => {
  expect(panel('chart-loss').smooth).toEqual([])
  expect(panel('chart-loss', METRICS, { smoothing: 'strong' }).smooth).toHaveLength(2)
})

test('all panels share one x range', () => {
  const metrics = [series('train_loss', { 1: 2, 12: 1 }), series('rouge_l', { 0: 27 })]
  expect(chartDataFromSeries(CONVERGENCE, metrics, START, { ...USUAL, axis: 'bytes' }).range).toEqual([0, 1200])
})

test('the best is the lowest or the highest, ignoring missing numbers', () => {
  expect(bestIndex([null, 3, 1, undefined], 'low')).toBe(2)
  expect(bestIndex([null, 3, 1, undefined], 'high')).toBe(1)
})

test('the best round is searched among all rounds of a point', () => {
  const points = [
    { round: 8, first: 1, value: 2, least: 0.5, greatest: 4, count: 8, time: START, bytes_up: 0 },
    { round: 16, first: 9, value: 1.5, least: 1, greatest: 2, count: 8, time: START, bytes_up: 0 },
  ]
  const { data, marks } = panel('chart-loss', [{ name: 'eval_loss', points }])
  expect(data.thinned?.least).toContainEqual([0.5, 1])
  expect(marks).toContainEqual({ line: 1, index: 0, text: 'best' })
})

test('the rounds’ cost has separate panels, without a note on missing values', () => {
  const measured = [series('local_seconds', { 1: 2 }), series('peak_memory_bytes', { 1: 6e8 })]
  const { panels, missing } = chartDataFromSeries(COST, measured, START, USUAL)
  expect(panels.map(({ testId, data }) => [testId, data.lines])).toEqual([
    ['chart-seconds', [[2], [undefined]]],
    ['chart-memory', [[6e8], [undefined]]],
  ])
  expect(missing).toEqual([])
})
