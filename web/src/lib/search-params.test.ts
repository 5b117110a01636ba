import { expect, test } from 'vitest'

import { oneOf, parseSearch, positiveInteger, someOf, stringifySearch } from './search-params'

test('a repeated key is a list, a single one a word', () => {
  expect(parseSearch('?state=running&state=queued&name=a+b')).toEqual({ state: ['running', 'queued'], name: 'a b' })
})

test('stringify is the inverse of parse and leaves empty values out', () => {
  const search = { state: ['running', 'queued'], name: 'a & b', round: 7 }
  expect(parseSearch(stringifySearch(search))).toEqual({ ...search, round: '7' })
  expect(stringifySearch({ state: [], name: '', round: undefined })).toBe('')
})

test('what an address may not say is dropped', () => {
  expect(oneOf(['round', 'bytes'], 'bytes')).toBe('bytes')
  expect(oneOf(['round', 'bytes'], 'date')).toBeUndefined()
  expect(someOf(['a', 'b', 'c'], ['c', 'x', 'a'])).toEqual(['a', 'c'])
  expect(someOf(['a', 'b'], 'b')).toEqual(['b'])
})

test.each([
  ['7', 7],
  ['0', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['x', undefined],
  [undefined, undefined],
])('positiveInteger(%j) is %j', (value, number) => {
  expect(positiveInteger(value)).toBe(number)
})
