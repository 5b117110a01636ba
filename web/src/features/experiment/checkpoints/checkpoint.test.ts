import { expect, test } from 'vitest'

import type { Artifact } from '@/api/types'

import { type Checkpoint, checkpoints, exportCommand, firstChoice, LOAD_SNIPPET, modelName } from './checkpoint'

function file(round: number, name: string, kind = 'checkpoint') {
  return { id: `${round}/${name}`, round, name, kind } as Artifact
}

test('the newest checkpoint first, files by name', () => {
  const artifacts = [
    file(9, 'model.safetensors'),
    file(10, 'model.safetensors'),
    file(10, 'config.json'),
    file(11, 'log', 'other'),
  ]
  expect(checkpoints(artifacts).map(({ round, files }) => [round, files.map(({ name }) => name)])).toEqual([
    [10, ['config.json', 'model.safetensors']],
    [9, ['model.safetensors']],
  ])
})

test('no files, no checkpoint', () => {
  expect(checkpoints([])).toEqual([])
})

test('the snippet loads the folder that the command writes', () => {
  const folder = exportCommand('exp_1').split(' ').at(-1)
  expect(LOAD_SNIPPET).toContain(`AutoModelForCausalLM.from_pretrained("${folder ?? ''}")`)
})

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
