import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import {
  isFiltered,
  nextSort,
  parseExperimentListUrl,
  toggleArchived,
  toggleGrouping,
  toggleOpen,
  toggleProject,
  toggleState,
  toggleTag,
  withoutFilters,
} from './url-state'

test('the view survives the address', () => {
  const address =
    '?state=running&state=failed&name=gsm8k&project=hearts&tag=a&tag=b+c&archived=only&algorithm=ferret&dataset=jsonl&where=eval_loss%3C2&sort=-rouge_l&columns=state,seed&group=seed&open=k1,k2'
  expect(stringifySearch({ ...parseExperimentListUrl(parseSearch(address)) })).toBe(address)
})

test('what is unknown or empty is left out', () => {
  const address = '?state=sleeping&name=&project=&tag=&archived=perhaps&where=x&sort=luck&columns=mood&group=age'
  expect(stringifySearch({ ...parseExperimentListUrl(parseSearch(address)) })).toBe('')
})

test('filters toggle, and what else is chosen stays', () => {
  expect(toggleState({ name: 'x' }, 'failed')).toEqual({ name: 'x', state: ['failed'] })
  expect(toggleTag({ tag: ['a'] }, 'a')).toEqual({ tag: undefined })
  expect(toggleProject({ project: 'a' }, 'b')).toEqual({ project: 'b' })
  expect(toggleArchived(toggleArchived({}))).toEqual({ archived: undefined })
  expect(toggleOpen({ open: 'a' }, 'b').open).toBe('a,b')
  expect(toggleGrouping({ group: 'seed', open: 'a' })).toEqual({ group: undefined, open: undefined })
})

test('clearing the filters keeps how the list is shown', () => {
  const view = { state: ['failed' as const], sort: 'name' as const, columns: 'seed', group: 'seed' as const }
  expect(isFiltered(view)).toBe(true)
  expect(withoutFilters(view)).toEqual({ sort: 'name', columns: 'seed', group: 'seed' })
  expect(isFiltered(withoutFilters(view))).toBe(false)
})

test('a column is sorted one way, the other, and not at all', () => {
  const ends = ['-rouge_l', 'rouge_l'] as const
  expect(nextSort(undefined, ends)).toBe('-rouge_l')
  expect(nextSort('-rouge_l', ends)).toBe('rouge_l')
  expect(nextSort('rouge_l', ends)).toBeUndefined()
  expect(nextSort('name', ends)).toBe('-rouge_l')
})
