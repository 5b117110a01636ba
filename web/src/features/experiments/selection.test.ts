import { expect, test } from 'vitest'

import type { ListedExperiment } from '@/api/types'

import { NOTHING, rowsOf, selectedOf, shownOf, toggled, withoutIds, withRange } from './selection'
import { experimentRows, type TableRow } from './table-rows'

const rows = ['a', 'b', 'c', 'd'].map((id) => ({
  id,
  state: 'running',
  seed_group: `group of ${id}`,
})) as ListedExperiment[]
const [a, b, , d] = rows as [ListedExperiment, ListedExperiment, ListedExperiment, ListedExperiment]

test('ticks keep the order in which they were made', () => {
  const both = toggled(toggled(NOTHING, d), a)
  expect([...both.keys()]).toEqual(['d', 'a'])
  expect([...toggled(both, d).keys()]).toEqual(['a'])
  expect([...withoutIds(both, ['a', 'x']).keys()]).toEqual(['d'])
})

test('a range goes either way, and without a beginning it is one row', () => {
  expect([...withRange(toggled(NOTHING, d), rows, 'd', 'b').keys()]).toEqual(['d', 'b', 'c'])
  expect([...withRange(NOTHING, rows, 'gone', 'b').keys()]).toEqual(['b'])
})

test('selected rows have their current state', () => {
  const now = { ...a, state: 'completed' } as ListedExperiment
  expect(selectedOf(toggled(toggled(NOTHING, a), b), [now, b]).map(({ state }) => state)).toEqual([
    'completed',
    'running',
  ])
})

test('hidden rows are not selected; rows of a closed group are, until the filter changes', () => {
  const both = toggled(toggled(NOTHING, a), b)
  const group = { kind: 'group', group: { key: 'group of a', count: 2 }, open: false } as TableRow
  expect([...shownOf(both, experimentRows([b, d])).keys()]).toEqual(['b'])
  expect([...shownOf(both, [group, ...experimentRows([b])]).keys()]).toEqual(['a', 'b'])
  expect([...rowsOf(both, [group, ...experimentRows([b])]).keys()]).toEqual(['b'])
})
