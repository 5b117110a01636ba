import { expect, test } from 'vitest'

import type { ListedExperiment } from '@/api/types'

import { NOTHING, selectedOf, toggled, withoutIds, withRange } from './selection'

const rows = ['a', 'b', 'c', 'd'].map((id) => ({ id, state: 'running' })) as ListedExperiment[]
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

test('selected rows have their current state, hidden ones their last', () => {
  const now = { ...a, state: 'completed' } as ListedExperiment
  expect(selectedOf(toggled(toggled(NOTHING, a), b), [now]).map(({ state }) => state)).toEqual(['completed', 'running'])
})
