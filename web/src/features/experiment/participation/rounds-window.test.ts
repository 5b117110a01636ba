import { expect, test } from 'vitest'

import { firstRound, windowOf } from './rounds-window'

test('a thousand participants over two hundred rounds are loaded whole, and many more in parts', () => {
  expect(windowOf(1000)).toBeGreaterThanOrEqual(200)
  expect([windowOf(0), windowOf(1_000_000)]).toEqual([2000, 5])
  expect([firstRound(5000, 400), firstRound(7, 400)]).toEqual([4600, 0])
})
