import { expect, test } from 'vitest'

import { EVENT_TYPES } from '@/api/events'
import type { Event } from '@/api/types'

import { EVENT_KINDS, eventText, kindOf, shownEvents, verbOf } from './event-text'

function event(type: string, data: Record<string, unknown> = {}, round: number | null = null): Event {
  return { seq: 1, type, round, data, time: '2026-11-21T12:00:00Z' }
}

test.each<[string, Record<string, unknown>, string]>([
  ['round.opened', { participants: 5, attempt: 1 }, 'Opened for 5 participants'],
  ['round.opened', { participants: 5, attempt: 2 }, 'Opened for 5 participants, attempt 2'],
  [
    'round.committed',
    { digest: '0123456789abcdef', metrics: { train_loss: 1.5, local_seconds: 3 } },
    'Model 0123456789 · Train loss 1.500',
  ],
  ['round.evaluated', { metrics: { rouge_l: 91.1, eval_loss: 0.25 } }, 'Evaluation loss 0.2500 · Rouge-L 91.1 %'],
  ['contribution.rejected', { participant: 'a', code: 'x.y', detail: 'holds NaN' }, 'From a: x.y: holds NaN'],
  ['round.abandoned', {}, 'No result'],
  ['experiment.completed', {}, 'All rounds are committed'],
  [
    'experiment.completed',
    { stopped: { round: 3, detail: 'stopped early: eval_loss has not improved' } },
    'Stopped early: eval_loss has not improved',
  ],
  ['experiment.extended', { rounds: 9 }, 'Now 9 rounds in total'],
  [
    'experiment.extended',
    { rounds: 5, stopped_after: 3 },
    'Now 5 rounds in total, with new patience: it had stopped early after round 3',
  ],
  ['checkpoint.written', { files: 5, bytes: 8192 }, '5 files, 8.19 kB'],
  ['moon.landed', {}, ''],
])('%s %j reads %s', (type, data, text) => {
  expect(eventText(event(type, data))).toBe(text)
})

test('every event of the stream has a text and one of the kinds', () => {
  for (const type of EVENT_TYPES) {
    expect(EVENT_KINDS).toContain(kindOf(event(type)))
    if (type !== 'round.evaluated') expect(eventText(event(type))).not.toBe('')
  }
  expect(verbOf(event('round.opened'))).toBe('opened')
})

test('events are filtered by kind and by what their text holds, newest first', () => {
  const events = [
    event('round.opened', { participants: 2 }, 1),
    event('contribution.accepted', { participant: 'Site-A' }, 1),
    event('contribution.accepted', { participant: 'site-b' }, 1),
  ]
  expect(shownEvents(events, [], '')).toEqual(events.toReversed())
  expect(shownEvents(events, ['contribution'], 'site-a')).toEqual([events[1]])
  expect(shownEvents(events, ['round'], ' round 1 ')).toEqual([events[0]])
})
