import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { parseExperimentUrl } from './url-state'

const ADDRESS =
  '?tab=log&x=bytes&y=linear&xscale=log&smooth=light&round=7&kind=round&kind=contribution&spec=all&model=0&temperature=0.7&tokens=40&seed=3'

test('the view survives the address', () => {
  const view = parseExperimentUrl(parseSearch(ADDRESS))
  expect(view).toEqual({
    tab: 'log',
    x: 'bytes',
    y: 'linear',
    xscale: 'log',
    smooth: 'light',
    round: 7,
    kind: ['round', 'contribution'],
    spec: 'all',
    model: 0,
    temperature: 0.7,
    tokens: 40,
    seed: 3,
  })
  expect(stringifySearch({ ...view })).toBe(ADDRESS)
})

test('so does what the participants are shown by', () => {
  const address = '?tab=rounds&round=7&cells=loss&zoom=2&who=behind&order=-missed&participant=clinic-7'
  const view = parseExperimentUrl(parseSearch(address))
  expect(view).toMatchObject({ cells: 'loss', zoom: 2, who: 'behind', order: '-missed', participant: 'clinic-7' })
  expect(stringifySearch({ ...view })).toBe(address)
  expect(parseExperimentUrl({ cells: 'state', zoom: '99', who: 'all', order: 'name', participant: '../x' })).toEqual({
    zoom: 6,
  })
})

test('nonsense falls back to the overview, rounds and the newest round', () => {
  const nonsense = {
    tab: 'secrets',
    x: 'colour',
    y: 'log',
    smooth: '7',
    round: '-2',
    kind: 'x',
    spec: 'some',
    model: '',
    temperature: '7',
    seed: '-1',
  }
  expect(parseExperimentUrl(nonsense)).toEqual({})
  expect(parseExperimentUrl({ tab: 'overview', x: 'round' })).toEqual({})
})
