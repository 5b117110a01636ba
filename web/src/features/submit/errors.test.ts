import { expect, test } from 'vitest'

import { MISSING, placed, spelledOut, toldNow } from './errors'

const PLACES = new Set(['name', 'algorithm', 'algorithm.K', 'algorithm.local', 'model', 'model.source'])

test('an error is shown at its input, or at the table around it', () => {
  const errors = [
    { field: 'algorithm.K', message: 'is too small' },
    { field: 'algorithm.Kk', message: 'is unknown; did you mean K?' },
    { field: 'algorithm.local', message: 'give one of the two' },
    { field: 'rouns', message: 'is unknown; did you mean rounds?' },
  ]
  expect(Object.fromEntries(placed(errors, PLACES))).toEqual({
    'algorithm.K': ['is too small'],
    algorithm: ['algorithm.Kk: is unknown; did you mean K?'],
    'algorithm.local': ['give one of the two'],
    '': ['rouns: is unknown; did you mean rounds?'],
  })
})

test('missing values are reported after an attempt to submit', () => {
  const errors = [
    { field: 'name', message: MISSING },
    { field: 'rounds', message: 'is too small' },
  ]
  expect(toldNow(errors, false)).toEqual([errors[1]])
  expect(toldNow(errors, true)).toEqual(errors)
})

test('a missing table lacks what it requires', () => {
  const errors = ['name', 'model', 'participants'].map((field) => ({ field, message: MISSING }))
  expect(spelledOut(errors, ['name', 'model.source']).map(({ field }) => field)).toEqual([
    'name',
    'model.source',
    'participants',
  ])
})
