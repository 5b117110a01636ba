import { expect, test } from 'vitest'

import { experimentPanels } from './panels'

const START = '2026-11-21T12:00:00Z'

function series(name: string, values: Record<number, number>) {
  const points = Object.entries(values).map(([round, value]) => ({
    round: Number(round),
    value,
    time: START,
    bytes_up: Number(round) * 100,
  }))
  return { name, points }
}

function panel(
  testId: string,
  metrics = [
    series('eval_loss', { 0: 2.7, 2: 1.8 }),
    series('bytes_up', { 1: 100, 2: 50 }),
    series('bytes_down', { 1: 900, 2: 900 }),
  ],
) {
  const found = experimentPanels(metrics, 'round', START).panels.find((drawn) => drawn.testId === testId)
  if (found === undefined) throw new Error(`no panel ${testId}`)
  return found
}

test('four panels, in reading order, with their units', () => {
  const { panels } = experimentPanels([], 'round', START)
  expect(panels.map(({ testId }) => testId)).toEqual([
    'chart-train_loss',
    'chart-eval_loss',
    'chart-rouge_l',
    'chart-bytes',
  ])
  expect(panels.map(({ yLabel }) => yLabel)).not.toContain('')
})

test('exact match has a panel where it is measured', () => {
  expect(panel('chart-exact_match', [series('exact_match', { 0: 0, 1: 12.5 })]).data.lines).toEqual([[0, 12.5]])
})

test('the noise of the projection has a panel where updates are projected', () => {
  expect(panel('chart-weight_noise', [series('weight_noise', { 0: 4.2, 1: 7 })]).data.lines).toEqual([[4.2, 7]])
})

test('evaluations appear at their own rounds, the base model at 0', () => {
  expect(panel('chart-eval_loss').data).toEqual({ x: [0, 2], rounds: [0, 2], lines: [[2.7, 1.8]] })
})

test('bytes are running totals, sent and received', () => {
  expect(panel('chart-bytes').data.lines).toEqual([
    [100, 150],
    [900, 1800],
  ])
})

test('a metric that does not exist yet is an empty panel', () => {
  expect(panel('chart-rouge_l').data).toEqual({ x: [], rounds: [], lines: [[]] })
})

test('all panels share one x range', () => {
  expect(experimentPanels([series('train_loss', { 1: 2, 12: 1 })], 'bytes', START).range).toEqual([0, 1200])
})
