import { expect, test } from 'vitest'

import { costFacts } from './cost'

function series(name: string, values: number[]) {
  const points = values.map((value, index) => ({ round: index + 1, value, time: '2026-11-21T12:00:00Z', bytes_up: 0 }))
  return { name, points }
}

test('medians over the rounds, and their sum', () => {
  expect(
    costFacts([series('local_seconds', [30, 2, 3]), series('aggregate_seconds', [1, 2]), series('eval_loss', [2.7])]),
  ).toEqual([
    { term: 'Local update', value: '3.0 s' },
    { term: 'Global aggregation', value: '1.5 s' },
    { term: 'Overall', value: '4.5 s' },
  ])
})

test('numbers exchanged and memory have their units', () => {
  expect(costFacts([series('numbers_sent', [62920]), series('peak_memory_bytes', [6.7e8])])).toEqual([
    { term: 'Parameters sent', value: '62,920' },
    { term: 'Peak memory', value: '670 MB' },
  ])
})

test('nothing before the first round', () => {
  expect(costFacts([])).toEqual([])
})
