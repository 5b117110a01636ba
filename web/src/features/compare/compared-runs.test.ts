import { expect, test } from 'vitest'

import { baselineOf, entriesOf, type Run } from './compared-runs'

function run(place: number, name: string, seed: number, rounds = 5): Run {
  const id = `exp_00000${place}`
  return { id, place, series: [], experiment: { id, name, spec: { name, seed, rounds } } as Run['experiment'] }
}

test('runs of one name are told apart by seed, then by id', () => {
  const labels = (runs: Run[]) => entriesOf(runs, false).map(({ label }) => label)
  expect(labels([run(0, 'a', 1), run(1, 'b', 1)])).toEqual(['a', 'b'])
  expect(labels([run(0, 'a', 1), run(1, 'a', 2)])).toEqual(['a · seed 1', 'a · seed 2'])
  expect(labels([run(0, 'a', 1), run(1, 'a', 1, 9)])).toEqual(['a · seed 1 · 000000', 'a · seed 1 · 000001'])
})

test('groups have the place and key of their first run', () => {
  const runs = [run(0, 'a', 1), run(1, 'b', 1, 9), run(4, 'a', 2)]
  const entries = entriesOf(runs, true)
  expect(entries.map(({ key, place, label }) => [key, place, label])).toEqual([
    ['exp_000000', 0, 'a (2 seeds)'],
    ['exp_000001', 1, 'b'],
  ])
  expect(baselineOf(entries, 'exp_000004')).toBe(entries[0])
  expect(baselineOf(entries, 'exp_gone')).toBeUndefined()
  expect(baselineOf(entries, undefined)).toBeUndefined()
})

test('nothing makes no entry', () => {
  expect(entriesOf([], true)).toEqual([])
})
