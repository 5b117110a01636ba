import { expect, test } from 'vitest'

import { bestRound, modelName } from './models'

function losses(values: Record<number, number | null>) {
  const points = Object.entries(values).map(([round, value]) => ({ round: Number(round), value }))
  return [{ name: 'eval_loss', points }] as Parameters<typeof bestRound>[1]
}

test('the lowest loss among the checkpoints is asked first', () => {
  expect(bestRound([0, 2, 4], losses({ 0: 3, 2: 1, 3: 0.5, 4: 2 }))).toBe(2)
  expect(bestRound([0, 4], losses({ 0: 3, 4: null }))).toBe(0)
  expect(bestRound([0, 2, 4], [])).toBe(4)
  expect(bestRound([], [])).toBeUndefined()
})

test('a model is named by its round, and by why one would choose it', () => {
  expect(modelName(0, 4, 4)).toBe('Base model')
  expect(modelName(2, 2, 4)).toBe('Round 2 (lowest loss)')
  expect(modelName(4, 4, 4)).toBe('Round 4 (lowest loss, newest)')
  expect(modelName(3, 2, 4)).toBe('Round 3')
})
