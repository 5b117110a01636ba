import { expect, test } from 'vitest'

import type { Round } from '@/api/types'

import { costFacts, phasesOf } from './round-costs'

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
    { term: 'Numbers sent', value: '62,920' },
    { term: 'Peak memory', value: '670 MB' },
  ])
})

test('nothing before the first round', () => {
  expect(costFacts([])).toEqual([])
})

/** A round with phases that end the given seconds after its opening. */
function round(number: number, ...ends: number[]): Round {
  const at = (seconds: number | undefined) =>
    seconds === undefined ? null : new Date(Date.UTC(2026, 10, 25) + seconds * 1000).toISOString()
  const [frozen, committed, evaluated] = ends
  const moments = { opened_at: at(0), frozen_at: at(frozen), committed_at: at(committed), evaluated_at: at(evaluated) }
  return { number, ...moments } as Round
}

test('the median of every phase, and its longest round', () => {
  expect(phasesOf([round(1, 40, 41, 45), round(2, 10, 12, 14), round(3, 12, 13, 16)])).toEqual([
    { term: 'Open for contributions', usual: 12, longest: { seconds: 40, round: 1 } },
    { term: 'Aggregation', usual: 1, longest: { seconds: 2, round: 2 } },
    { term: 'Evaluation', usual: 3, longest: { seconds: 4, round: 1 } },
  ])
})

test('a round that is not over counts with what is over', () => {
  expect(phasesOf([round(1, 10)]).map(({ term }) => term)).toEqual(['Open for contributions'])
  expect(phasesOf([round(1)])).toEqual([])
})
