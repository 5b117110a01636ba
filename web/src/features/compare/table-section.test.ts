import { expect, test } from 'vitest'

import { specRows } from './table-section'

test('rows are sorted, without the name, and say whether they differ', () => {
  const rows = specRows([
    [{ name: 'a', rounds: 5, algorithm: { name: 'ferret', K: 8 } }],
    [{ name: 'b', rounds: 5, algorithm: { name: 'fedavg' } }],
  ])
  expect(rows).toEqual([
    { path: 'algorithm.K', values: ['8', undefined], differs: true },
    { path: 'algorithm.name', values: ['ferret', 'fedavg'], differs: true },
    { path: 'rounds', values: ['5', '5'], differs: false },
  ])
})

test('unset is not the same as a field that does not exist', () => {
  expect(specRows([[{ a: null }], [{}]])[0]).toEqual({ path: 'a', values: ['unset', undefined], differs: true })
})

test('a group lists what its members say', () => {
  expect(specRows([[{ seed: 1 }, { seed: 2 }, { seed: 1 }], [{ seed: 3 }]])[0]?.values).toEqual(['1, 2', '3'])
})

test('one run has no differences, no run no rows', () => {
  expect(specRows([[{ seed: 1 }]])[0]?.differs).toBe(false)
  expect(specRows([])).toEqual([])
})
