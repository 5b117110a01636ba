import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { parseView } from './view'

const ADDRESS = '?tab=events&x=bytes&y=linear&smooth=light&round=7&kind=round&kind=contribution&spec=all'

test('the view survives the address', () => {
  const view = parseView(parseSearch(ADDRESS))
  expect(view).toEqual({
    tab: 'events',
    x: 'bytes',
    y: 'linear',
    smooth: 'light',
    round: 7,
    kind: ['round', 'contribution'],
    spec: 'all',
  })
  expect(stringifySearch({ ...view })).toBe(ADDRESS)
})

test('nonsense falls back to the overview, rounds and the newest round', () => {
  const nonsense = { tab: 'secrets', x: 'colour', y: 'log', smooth: '7', round: '-2', kind: 'x', spec: 'some' }
  expect(parseView(nonsense)).toEqual({})
  expect(parseView({ tab: 'overview', x: 'round' })).toEqual({})
})
