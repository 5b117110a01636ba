import { expect, test } from 'vitest'

import { changesBetween } from './changes-panel'

test('what differs, and what only one of the two has', () => {
  const before = { seed: 1, algorithm: { name: 'ferret', K: 64, local: { steps: 5 } } }
  const after = { seed: 1, algorithm: { name: 'fedprox', mu: 0.1, local: { steps: 5 } } }
  expect(changesBetween(before, after)).toEqual([
    { path: 'algorithm.name', before: 'ferret', after: 'fedprox' },
    { path: 'algorithm.K', before: '64', after: undefined },
    { path: 'algorithm.mu', before: undefined, after: '0.1' },
  ])
})
