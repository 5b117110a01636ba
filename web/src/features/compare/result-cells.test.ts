import { expect, test } from 'vitest'

import type { Run } from './compared-runs'
import { bestOf, bytesEach, bytesTotal, lastOf, resultRows } from './result-cells'

function run(series: Record<string, number[]>, experiment: object = {}): Run {
  return {
    id: 'exp_1',
    place: 0,
    series: Object.entries(series).map(([name, values]) => ({
      name,
      points: values.map((value, round) => ({ round, value, time: '', bytes_up: 0 })),
    })),
    experiment: {
      participants: 4,
      bytes_up: 0,
      bytes_down: 0,
      spec: { participants: { fraction: 1 } },
      ...experiment,
    } as Run['experiment'],
  }
}

test('last is the newest value, best depends on the metric', () => {
  const one = run({ eval_loss: [3, 1, 2], rouge_l: [20, 40, 30] })
  expect([lastOf(one, 'eval_loss'), lastOf(one, 'exact_match')]).toEqual([2, undefined])
  expect(bestOf(one, { name: 'eval_loss', better: 'low' })).toBe(1)
  expect(bestOf(one, { name: 'rouge_l', better: 'high' })).toBe(40)
  expect(bestOf(one, { name: 'rouge_l', better: undefined })).toBeUndefined()
  expect(bestOf(one, { name: 'exact_match', better: 'high' })).toBeUndefined()
})

test('bytes of one participant: the round’s sum over the selected participants, and the median of the rounds', () => {
  const bytes = { bytes_down: [0, 0, 800, 800] }
  expect(bytesEach(run(bytes), 'down')).toBe(200)
  expect(bytesEach(run(bytes, { spec: { participants: { fraction: 0.3 } } }), 'down')).toBe(400)
  const seven = { participants: 100, spec: { participants: { fraction: 0.07 } } }
  expect(bytesEach(run({ bytes_down: [0, 0, 700, 700] }, seven), 'down')).toBe(100)
  expect(bytesEach(run(bytes, { participants: 0 }), 'down')).toBeUndefined()
  expect(bytesEach(run({}), 'up')).toBeUndefined()
})

test('zero bytes have no value, so no logarithm is drawn', () => {
  expect([bytesTotal(run({}), 'up'), bytesTotal(run({}, { bytes_down: 7 }), 'down')]).toEqual([undefined, 7])
})

test('rows are what somebody has; a group has mean and deviation', () => {
  const runs: [Run, ...Run[]] = [run({ rouge_l: [40] }), run({ rouge_l: [60] })]
  const rows = resultRows([
    { key: 'a', place: 0, label: 'a', runs },
    { key: 'b', place: 1, label: 'b', runs: [run({})] },
  ])
  expect(rows.map(({ title }) => title)).toEqual(['Rouge-L, best'])
  expect(rows[0]?.values).toEqual([{ mean: 50, sd: Math.sqrt(200), count: 2 }, undefined])
})

test('in downsampled curves the best is a bound, and the last is the experiment’s', () => {
  const thinned = run({}, { metrics: { eval_loss: { first: 3, last: 1.9, best: 1.2 } } })
  const point = { round: 8, first: 1, value: 2, least: 1.2, greatest: 3, count: 8, time: '', bytes_up: 0 }
  thinned.series.push({ name: 'eval_loss', points: [point] })
  expect(bestOf(thinned, { name: 'eval_loss', better: 'low' })).toBe(1.2)
  expect(bestOf(thinned, { name: 'eval_loss', better: 'high' })).toBe(3)
  expect(lastOf(thinned, 'eval_loss')).toBe(1.9)
})
