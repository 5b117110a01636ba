import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { parseFilters, toggleState } from './filters'

test('filters survive the address', () => {
  const address = '?state=running&state=failed&name=gsm8k'
  expect(stringifySearch({ ...parseFilters(parseSearch(address)) })).toBe(address)
})

test('unknown states and an empty name filter nothing', () => {
  expect(parseFilters(parseSearch('?state=sleeping&name='))).toEqual({})
})

test('a state toggles on and off beside the name', () => {
  const on = toggleState({ name: 'demo' }, 'failed')
  expect(on).toEqual({ name: 'demo', state: ['failed'] })
  expect(toggleState(on, 'failed')).toEqual({ name: 'demo', state: [] })
})
