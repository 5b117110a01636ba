import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { parseFilters, toggleArchived, toggleProject, toggleState } from './filters'

test('filters survive the address', () => {
  const address = '?state=running&state=failed&name=gsm8k&project=hearts&archived=only'
  expect(stringifySearch({ ...parseFilters(parseSearch(address)) })).toBe(address)
})

test('unknown states and an empty name filter nothing', () => {
  expect(parseFilters(parseSearch('?state=sleeping&name=&project=&archived=perhaps'))).toEqual({})
})

test('a state toggles on and off, and the name stays', () => {
  const on = toggleState({ name: 'demo' }, 'failed')
  expect(on).toEqual({ name: 'demo', state: ['failed'] })
  expect(toggleState(on, 'failed')).toEqual({ name: 'demo', state: [] })
})

test('one project at a time is chosen, and the chosen one is left', () => {
  const on = toggleProject({ name: 'demo', project: 'lungs' }, 'hearts')
  expect(on).toEqual({ name: 'demo', project: 'hearts' })
  expect(toggleProject(on, 'hearts')).toEqual({ name: 'demo' })
})

test('archived experiments are shown or hidden, and other filters stay', () => {
  const on = toggleArchived({ name: 'demo' })
  expect(on).toEqual({ name: 'demo', archived: 'only' })
  expect(toggleArchived(on)).toEqual({ name: 'demo' })
})
