import { expect, it } from 'vitest'

import { cosinePairs } from './cosine-matrix'

const agreement = {
  participants: ['a', 'b', 'c', 'd'],
  display_names: {},
  cosines: [0.12, 0.13, 0.14, 0.23, 0.24, null],
  errors: [0.1, 0.1, 0.1, 0.1, 0.1, null],
}

it('finds each pair, whichever comes first', () => {
  const { cosineOf } = cosinePairs(agreement)
  expect(cosineOf(0, 1).cosine).toBe(0.12)
  expect(cosineOf(3, 0).cosine).toBe(0.14)
  expect(cosineOf(2, 1).cosine).toBe(0.23)
  expect(cosineOf(1, 3).cosine).toBe(0.24)
  expect(cosineOf(3, 2)).toEqual({ cosine: null, error: null })
})

it('writes each pair once', () => {
  const lines = cosinePairs(agreement).csv().trim().split('\r\n')
  expect(lines).toHaveLength(7)
  expect(lines[0]).toBe('participant,other,cosine,standard_error')
  expect(lines[4]).toBe('b,c,0.23,0.1')
  expect(lines[6]).toBe('c,d,,')
})
