import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { parseView, withAxis } from './view'

test('axis and round survive the address', () => {
  const view = parseView(parseSearch('?x=bytes&round=7'))
  expect(view).toEqual({ x: 'bytes', round: 7 })
  expect(stringifySearch({ ...view })).toBe('?x=bytes&round=7')
})

test('nonsense falls back to rounds and the newest round', () => {
  expect(parseView({ x: 'colour', round: '-2' })).toEqual({})
  expect(parseView({ x: 'round' })).toEqual({})
})

test('the usual axis leaves the address, the chosen round stays', () => {
  expect(withAxis({ x: 'bytes', round: 7 }, 'round')).toEqual({ round: 7 })
  expect(withAxis({}, 'time')).toEqual({ x: 'time' })
})
