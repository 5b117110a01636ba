import { expect, test } from 'vitest'

import { stateLook } from './state-chip'

test.each([
  ['running', 'moving'],
  ['completed', 'done'],
  ['failed', 'bad'],
  ['paused', 'paused'],
  ['stalled', 'warning'],
  ['queued', 'waiting'],
  ['cancelled', 'ended'],
  ['something new', 'ended'],
])('%s is marked %s', (state, look) => {
  expect(stateLook(state)).toBe(look)
})
