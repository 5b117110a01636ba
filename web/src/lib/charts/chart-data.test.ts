import { expect, test } from 'vitest'

import {
  chartData,
  countOf,
  csvOf,
  cumulative,
  type Point,
  roundsAt,
  sharedRange,
  smoothed,
  within,
} from './chart-data'

const START = '2026-11-21T12:00:00Z'

function point(round: number, value: number): Point {
  const time = new Date(Date.parse(START) + round * 10_000).toISOString()
  return { round, value, time, bytes_up: round * 8192 }
}

test('points come sorted by x, whatever their order', () => {
  expect(chartData([[point(2, 1.5), point(0, 2.7)]], 'round', START)).toEqual({
    x: [0, 2],
    rounds: [0, 2],
    lines: [[2.7, 1.5]],
  })
})

test('x is the round, the seconds since the start, the clock or the bytes sent', () => {
  const line = [point(0, 3), point(1, 2)]
  const start = Date.parse(START) / 1000
  expect(chartData([line], 'round', START).x).toEqual([0, 1])
  expect(chartData([line], 'time', START).x).toEqual([0, 10])
  expect(chartData([line], 'clock', START).x).toEqual([start, start + 10])
  expect(chartData([line], 'bytes', START).x).toEqual([0, 8192])
})

test('a clock that runs behind the start does not draw left of the axis', () => {
  const early = { ...point(0, 3), time: '2026-11-21T11:59:00Z' }
  expect(chartData([[early]], 'time', START).x).toEqual([0])
})

test('two lines share their x; where one was not measured it has no value, and no gap', () => {
  const joined = chartData([[point(1, 10), point(2, 20)], [point(2, 5)]], 'round', START)
  expect(joined).toStrictEqual({
    x: [1, 2],
    rounds: [1, 2],
    lines: [
      [10, 20],
      [undefined, 5],
    ],
  })
})

test.each([NaN, Infinity, null as unknown as number])('%d is a gap', (value) => {
  const { lines } = chartData([[point(1, 3), point(2, value), point(3, 2)]], 'round', START)
  expect(lines).toStrictEqual([[3, null, 2]])
  expect(countOf(lines[0])).toBe(2)
})

test('cumulative adds up in the order of rounds', () => {
  expect(cumulative([point(2, 5), point(1, 3), point(3, 2)]).map(({ value }) => value)).toEqual([3, 8, 10])
})

test('panels share the range of the longest', () => {
  const short = chartData([[point(1, 1)]], 'round', START)
  const long = chartData([[point(1, 1), point(9, 1)]], 'round', START)
  expect(sharedRange([short, long], 'round')).toEqual([0, 9])
})

test('the clock begins with the first point, not in 1970', () => {
  const start = Date.parse(START) / 1000
  const empty = chartData([[]], 'clock', START)
  expect(sharedRange([empty, chartData([[point(0, 1), point(9, 1)]], 'clock', START)], 'clock')).toEqual([
    start,
    start + 90,
  ])
  expect(sharedRange([empty], 'clock')).toEqual([0, 10])
})

test('a chart without points, or with the base model alone, still has a range', () => {
  expect(sharedRange([chartData([[]], 'time', START)], 'time')).toEqual([0, 10])
  expect(sharedRange([chartData([[point(0, 2.7)]], 'round', START)], 'round')).toEqual([0, 1])
})

test('within finds what a zoom shows', () => {
  expect(within([0, 1, 2, 3], [0.5, 2])).toEqual([1, 2])
  expect(within([0, 1, 2, 3], [1.2, 1.8])).toBeNull()
  expect(within([], [0, 1])).toBeNull()
})

test('points for several rounds have their first round and their bounds', () => {
  const thin = { ...point(8, 2), first: 5, least: 1, greatest: 4, count: 4 }
  const data = chartData([[point(0, 3), thin]], 'round', START)
  expect(data.thinned).toEqual({ firsts: [0, 5], least: [[3, 1]], greatest: [[3, 4]] })
  expect([roundsAt(data, 0), roundsAt(data, 1)]).toEqual(['0', '5–8'])
})

test('a total counts every value of a point', () => {
  const thin = { ...point(8, 2), first: 5, least: 1, greatest: 4, count: 4 }
  expect(cumulative([point(4, 1), thin]).map(({ value }) => value)).toEqual([1, 9])
})

const DATA = {
  x: [0, 10.5],
  rounds: [0, 1],
  lines: [
    [7.5, 0.123456789],
    [undefined, null],
  ],
}

test('every value with all its digits; what is not a number is marked', () => {
  expect(csvOf(DATA, 'round', ['eval_loss', 'train_loss'])).toBe(
    'round,eval_loss,train_loss\r\n0,7.5,\r\n1,0.123456789,NaN\r\n',
  )
})

test('another axis has a separate column', () => {
  expect(csvOf(DATA, 'time', ['a', 'b']).split('\r\n')[2]).toBe('1,10.5,0.123456789,NaN')
  expect(csvOf(DATA, 'clock', ['a', 'b']).split('\r\n')[1]).toBe('0,1970-01-01T00:00:00.000Z,7.5,')
})

test('thinned out values come with their rounds and bounds', () => {
  const thinned = { firsts: [1], least: [[0.5]], greatest: [[null]] }
  const data = { x: [8], rounds: [8], lines: [[2]], thinned }
  expect(csvOf(data, 'round', ['loss'])).toBe('first_round,round,loss,loss_min,loss_max\r\n1,8,2,0.5,NaN\r\n')
})

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
