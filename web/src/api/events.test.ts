import { describe, expect, it, test } from 'vitest'

import { applyEvent, EVENT_TYPES, type EventType, type ExperimentEvent, staleParts } from './events'
import type { Experiment, ExperimentState } from './types'

const SEEN = 7

function event(type: EventType, round: number | null = null, seq = SEEN + 1): ExperimentEvent {
  return { seq, type, round, data: {}, time: '2026-11-21T12:00:00Z' }
}

function experiment(state: ExperimentState, round = 0) {
  return { id: 'exp_1', state, round, last_event_seq: SEEN } as Experiment
}

describe('applyEvent', () => {
  it.each<[ExperimentState, EventType, ExperimentState]>([
    ['queued', 'experiment.running', 'running'],
    ['running', 'experiment.paused', 'paused'],
    ['paused', 'experiment.resumed', 'running'],
    ['paused', 'experiment.extended', 'paused'],
    ['running', 'experiment.completed', 'completed'],
    ['running', 'experiment.failed', 'failed'],
    ['queued', 'experiment.cancelled', 'cancelled'],
    ['running', 'round.opened', 'running'],
  ])('moves %s by %s to %s', (before, type, after) => {
    expect(applyEvent(experiment(before), event(type)).state).toBe(after)
  })

  it.each<[ExperimentState, EventType]>([
    ['running', 'experiment.paused'],
    ['paused', 'experiment.resumed'],
    ['running', 'experiment.completed'],
  ])('keeps %s when what it has seen already comes again: %s', (state, type) => {
    expect(applyEvent(experiment(state), event(type, null, SEEN)).state).toBe(state)
  })

  it('advances the round when it is committed', () => {
    expect(applyEvent(experiment('running', 3), event('round.committed', 4)).round).toBe(4)
    expect(applyEvent(experiment('running', 3), event('round.committed', 1, SEEN)).round).toBe(3)
    expect(applyEvent(experiment('running', 3), event('round.opened', 4)).round).toBe(3)
  })

  it('remembers how far it has come', () => {
    expect(applyEvent(experiment('running'), event('round.opened', 1, SEEN + 3)).last_event_seq).toBe(SEEN + 3)
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
  // The log is polled no more once the experiment has ended.
  expect(staleParts(event('experiment.completed'))).toContain('events')
})
