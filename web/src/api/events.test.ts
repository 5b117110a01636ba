import { describe, expect, it, test } from 'vitest'

import { applyEvent, EVENT_TYPES, type EventType, type ExperimentEvent, staleParts } from './events'
import type { Experiment, ExperimentState } from './types'

function event(type: EventType, round: number | null = null): ExperimentEvent {
  return { seq: 1, type, round, data: {}, time: '2026-11-21T12:00:00Z' }
}

function experiment(state: ExperimentState, round = 0) {
  return { id: 'exp_1', state, round } as Experiment
}

describe('applyEvent', () => {
  it.each<[ExperimentState, EventType, ExperimentState]>([
    ['queued', 'experiment.running', 'running'],
    ['running', 'experiment.completed', 'completed'],
    ['running', 'experiment.failed', 'failed'],
    ['queued', 'experiment.cancelled', 'cancelled'],
    ['running', 'round.opened', 'running'],
  ])('moves %s by %s to %s', (before, type, after) => {
    expect(applyEvent(experiment(before), event(type)).state).toBe(after)
  })

  it.each<[ExperimentState, EventType]>([
    ['running', 'experiment.queued'],
    ['completed', 'experiment.running'],
    ['paused', 'experiment.running'],
    ['cancelled', 'experiment.completed'],
  ])('keeps %s when the past is replayed by %s', (state, type) => {
    expect(applyEvent(experiment(state), event(type)).state).toBe(state)
  })

  it('advances the round when it is committed, and never back', () => {
    expect(applyEvent(experiment('running', 3), event('round.committed', 4)).round).toBe(4)
    expect(applyEvent(experiment('running', 3), event('round.committed', 1)).round).toBe(3)
    expect(applyEvent(experiment('running', 3), event('round.opened', 4)).round).toBe(3)
  })

  it('leaves the object it was given alone', () => {
    const before = Object.freeze(experiment('queued'))
    expect(applyEvent(before, event('experiment.running'))).not.toBe(before)
  })
})

test('every event makes something stale', () => {
  for (const type of EVENT_TYPES) expect(staleParts(event(type)), type).not.toHaveLength(0)
})

test('a committed round refreshes curves and rounds, a checkpoint the files', () => {
  expect(staleParts(event('round.committed'))).toEqual(expect.arrayContaining(['show', 'rounds', 'metrics']))
  expect(staleParts(event('checkpoint.written'))).toEqual(['artifacts'])
})
