import { expect, test } from 'vitest'

import { seedGroups } from './groups'

function run(id: string, spec: Record<string, unknown>) {
  return { id, spec }
}

test('runs that differ in seed and name only belong together, whatever the order of their fields', () => {
  const groups = seedGroups([
    run('a', { name: 'one', seed: 1, rounds: 5, algorithm: { name: 'ferret', K: 8 } }),
    run('b', { name: 'other', seed: 1, rounds: 5, algorithm: { name: 'ferret', K: 16 } }),
    run('c', { seed: 2, name: 'two', algorithm: { K: 8, name: 'ferret' }, rounds: 5 }),
  ])
  expect(groups.map((group) => group.map(({ id }) => id))).toEqual([['a', 'c'], ['b']])
})

test("another algorithm's name is a difference", () => {
  expect(
    seedGroups([run('a', { algorithm: { name: 'ferret' } }), run('b', { algorithm: { name: 'fedavg' } })]),
  ).toHaveLength(2)
})

test('a run alone is a group of one, and no run is none', () => {
  expect(seedGroups([run('a', { seed: 1 })])).toHaveLength(1)
  expect(seedGroups([])).toEqual([])
})
