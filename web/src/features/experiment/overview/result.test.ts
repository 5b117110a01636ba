import { expect, test } from 'vitest'

import type { Experiment, Round } from '@/api/types'

import { changes, traffic, uploadCost } from './result'

const ROUGE = { first: 27.43, last: 91.1, best: 91.1 }
const LOSS = { first: 7.53, last: 0.2684, best: 0.25 }

test('the score comes first, then the loss, from the base model to now', () => {
  expect(changes({ eval_loss: LOSS, rouge_l: ROUGE }, 12)).toEqual([
    { label: 'Rouge-L', from: '27.4', to: '91.1 %', best: undefined },
    { label: 'Evaluation loss', from: '7.530', to: '0.2684', best: '0.2500' },
  ])
})

test('exact match replaces Rouge-L if references have one answer', () => {
  const found = changes({ exact_match: ROUGE, rouge_l: ROUGE }, 3)
  expect(found.map(({ label }) => label)).toEqual(['Exact match'])
})

test('before round 1 there is the base model alone, and before that nothing', () => {
  expect(changes({ rouge_l: { first: 27.43, last: 27.43, best: 27.43 } }, 0)).toEqual([
    { label: 'Rouge-L', from: undefined, to: '27.4 %', best: undefined },
  ])
  expect(changes({}, 0)).toEqual([])
})

function round(changes: Partial<Round>): Round {
  return { accepted: 5, bytes_up: 45_000, committed_at: '2026-11-21T12:00:00Z', ...changes } as Round
}

test('an upload is the mean of the accepted ones, next to four bytes for every number', () => {
  const rounds = [round({}), round({ accepted: 4, bytes_up: 36_000 }), round({ committed_at: null, bytes_up: 1 })]
  expect(uploadCost(rounds, { a: [1000, 1000], b: [125_000], scalar: [] })).toEqual({
    perUpload: 9000,
    numbers: 1_125_001,
    allWeights: 4_500_004,
    ratio: 4_500_004 / 9000,
  })
})

test('without a committed round, or before the model is known, less is shown', () => {
  expect(uploadCost([round({ committed_at: null })], { a: [2] })).toBeUndefined()
  expect(uploadCost([round({})], null)).toMatchObject({ perUpload: 9000, ratio: undefined })
})

test('traffic is that of committed rounds, the rest is separate', () => {
  const points = (...values: number[]) =>
    values.map((value, index) => ({ round: index + 1, value, time: '', bytes_up: 0 }))
  const series = [
    { name: 'bytes_up', points: points(100, 100) },
    { name: 'bytes_down', points: points(0, 900) },
  ]
  const experiment = { bytes_up: 220, bytes_down: 950 } as Experiment
  expect(traffic(series, experiment)).toEqual({ sent: 200, received: 900, besides: 70 })
})
