import { expect, test } from 'vitest'

import type { Artifact } from '@/api/types'

import { exportCommand, latestCheckpoint, LOAD_SNIPPET } from './checkpoint'

function file(round: number, name: string, kind = 'checkpoint') {
  return { id: `${round}/${name}`, round, name, kind } as Artifact
}

test('the newest checkpoint, by file name', () => {
  const artifacts = [
    file(9, 'model.safetensors'),
    file(10, 'model.safetensors'),
    file(10, 'config.json'),
    file(11, 'log', 'other'),
  ]
  expect(latestCheckpoint(artifacts).map(({ id }) => id)).toEqual(['10/config.json', '10/model.safetensors'])
})

test('no checkpoint, no files', () => {
  expect(latestCheckpoint([])).toEqual([])
})

test('the snippet loads the folder that the command writes', () => {
  const folder = exportCommand('exp_1').split(' ').at(-1)
  expect(LOAD_SNIPPET).toContain(`AutoModelForCausalLM.from_pretrained("${folder ?? ''}")`)
})
