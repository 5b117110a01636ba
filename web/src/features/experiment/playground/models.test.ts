import { expect, test } from 'vitest'

import type { Artifact } from '@/api/types'
import type { Checkpoint } from '@/features/experiment/checkpoints/checkpoint'

import { firstChoice, modelName } from './models'

function models(rounds: number[], best?: number): Checkpoint[] {
  return rounds.map((round) => ({ round, files: [{ best: round === best }] as Artifact[] }))
}

test('the best model comes first, or the newest', () => {
  expect(firstChoice(models([4, 2, 0], 2))).toBe(2)
  expect(firstChoice(models([4, 2, 0]))).toBe(4)
  expect(firstChoice([])).toBeUndefined()
})

test('a model is named by its round, and by why one would choose it', () => {
  const named = (best: number) => {
    const all = models([4, 2, 0], best)
    return all.map((model) => modelName(model, all))
  }
  expect(named(2)).toEqual(['Round 4 (newest)', 'Round 2 (best)', 'Base model'])
  expect(named(4)).toEqual(['Round 4 (best, newest)', 'Round 2', 'Base model'])
})
