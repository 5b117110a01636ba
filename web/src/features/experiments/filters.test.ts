import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { parseFilters, toggleArchived, toggleState } from './filters'

test('filters survive the address', () => {
  const address = '?state=running&state=failed&name=gsm8k&archived=only'
  expect(stringifySearch({ ...parseFilters(parseSearch(address)) })).toBe(address)
})

test('unknown states and an empty name filter nothing', () => {
  expect(parseFilters(parseSearch('?state=sleeping&name=&archived=perhaps'))).toEqual({})
})

test('a state toggles on and off, and the name stays', () => {
  const on = toggleState({ name: 'demo' }, 'failed')
  expect(on).toEqual({ name: 'demo', state: ['failed'] })
  expect(toggleState(on, 'failed')).toEqual({ name: 'demo', state: [] })
})

test('archived experiments are shown or hidden, and other filters stay', () => {
  const on = toggleArchived({ name: 'demo' })
  expect(on).toEqual({ name: 'demo', archived: 'only' })
  expect(toggleArchived(on)).toEqual({ name: 'demo' })
})
