import { expect, test } from 'vitest'

import type { ExperimentGroup, ListedExperiment } from '@/api/types'

import { chosenColumns, usualColumns } from './columns'
import { spreadText } from './group-row'
import { experimentsOf, groupRows } from './table-rows'

const one = (id: string) => ({ id }) as ListedExperiment
const group = (key: string, count: number) => ({ key, count, newest: one(`${key}-newest`) }) as ExperimentGroup

test('a group of one is an experiment, an open one is followed by what is in it', () => {
  const rows = groupRows([group('x', 1), group('y', 2), group('z', 3)], ['y'], { y: [one('y1'), one('y2')] })
  expect(rows.map(({ kind }) => kind)).toEqual(['experiment', 'group', 'experiment', 'experiment', 'group'])
  expect(experimentsOf(rows).map(({ id }) => id)).toEqual(['x-newest', 'y1', 'y2'])
})

test('columns come in the order of the table, and metrics where there is a value', () => {
  expect(chosenColumns('seed,state,mood')).toEqual(['state', 'seed'])
  expect(chosenColumns('mood')).toBeUndefined()
})

test('seven columns follow the name, the most telling first', () => {
  const plain = { metrics: {}, tags: [], estimated_seconds_left: null } as unknown as ListedExperiment
  const measured = {
    ...plain,
    metrics: { eval_loss: {}, rouge_l: {} },
    tags: ['hearts'],
  } as unknown as ListedExperiment
  const costs = ['bytes_per_upload', 'bytes_up']
  expect(usualColumns([plain], 1)).toEqual(['state', 'round', 'algorithm', 'dataset', ...costs, 'created'])
  expect(usualColumns([measured, plain], 1)).toEqual([
    'state',
    'round',
    'algorithm',
    'eval_loss',
    'rouge_l',
    'tags',
    'created',
  ])
  expect(usualColumns([measured], 2)).not.toContain('tags')
  expect(usualColumns([measured], 2)).toContain('project')
})

test('mean and deviation have one unit', () => {
  expect(spreadText('rouge_l', { mean: 35.24, sd: 1.41, count: 3 })).toBe('35.2 ± 1.4 %')
  expect(spreadText('eval_loss', { mean: 1.9, sd: 0.12, count: 3 })).toBe('1.900 ± 0.1200')
  expect(spreadText('eval_loss', { mean: 1.9, sd: null, count: 1 })).toBe('1.900')
})
