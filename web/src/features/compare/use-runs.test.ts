// @vitest-environment jsdom
import { expect, test } from 'vitest'

import type { Experiment } from '@/api/types'

import { metricsStamp, pollMilliseconds } from './use-runs'

test('a few runs are polled every five seconds, twenty every twenty', () => {
  expect([1, 5, 20].map(pollMilliseconds)).toEqual([5000, 5000, 20_000])
})

test('curves grow with rounds, evaluations and the end, not with every event', () => {
  const before = { state: 'running', round: 1, last_event_seq: 7, metrics: {} } as Experiment
  const stamp = metricsStamp(before)
  expect(metricsStamp({ ...before, last_event_seq: 9 })).toBe(stamp)
  expect(metricsStamp({ ...before, round: 2 })).not.toBe(stamp)
  expect(metricsStamp({ ...before, state: 'completed' })).not.toBe(stamp)
  expect(metricsStamp({ ...before, metrics: { eval_loss: { first: 1, last: 1, best: 1 } } })).not.toBe(stamp)
})
