import { expect, test } from 'vitest'

import { flatten } from './flatten'

test('nested fields become dotted paths', () => {
  expect(
    flatten({ rounds: 5, algorithm: { name: 'ferret', local: { clip: null } }, labels: [1, 2], on: true }),
  ).toEqual([
    ['rounds', '5'],
    ['algorithm.name', 'ferret'],
    ['algorithm.local.clip', 'unset'],
    ['labels', '[1,2]'],
    ['on', 'true'],
  ])
})
