import { expect, test } from 'vitest'

import type { Artifact } from '@/api/types'

import { checkpoints, exportCommand, LOAD_SNIPPET } from './checkpoint'

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
