import { expect, test } from 'vitest'

import { baselineOf, entriesOf, type Run, seedGroups, stat } from './compared-runs'

function run(place: number, name: string, seed: number, rounds = 5): Run {
  const id = `exp_00000${place}`
  return { id, place, series: [], experiment: { id, name, spec: { name, seed, rounds } } as Run['experiment'] }
}

test('runs of one name are distinguished by seed, then by id', () => {
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

function specRun(id: string, spec: Record<string, unknown>) {
  return { id, spec }
}

test('runs that differ in seed and name only belong together, whatever the order of their fields', () => {
  const groups = seedGroups([
    specRun('a', { name: 'one', seed: 1, rounds: 5, algorithm: { name: 'ferret', K: 8 } }),
    specRun('b', { name: 'other', seed: 1, rounds: 5, algorithm: { name: 'ferret', K: 16 } }),
    specRun('c', { seed: 2, name: 'two', algorithm: { K: 8, name: 'ferret' }, rounds: 5 }),
  ])
  expect(groups.map((group) => group.map(({ id }) => id))).toEqual([['a', 'c'], ['b']])
})

test("another algorithm's name is a difference", () => {
  expect(
    seedGroups([specRun('a', { algorithm: { name: 'ferret' } }), specRun('b', { algorithm: { name: 'fedavg' } })]),
  ).toHaveLength(2)
})

test('a single run is a group of one, and no runs give no group', () => {
  expect(seedGroups([specRun('a', { seed: 1 })])).toHaveLength(1)
  expect(seedGroups([])).toEqual([])
})

test('mean and standard deviation of a sample; what is missing does not count', () => {
  expect(stat([1, undefined, 3])).toEqual({ mean: 2, sd: Math.SQRT2, count: 2 })
})

test('one value has no deviation, none has no mean', () => {
  expect(stat([7])).toEqual({ mean: 7, sd: undefined, count: 1 })
  expect(stat([undefined])).toBeUndefined()
})
