import { expect, test } from 'vitest'

import type { Participant } from '@/api/types'

import { round } from './matrix.fixture'
import {
  participantSummaries,
  type ParticipantSummary,
  passes,
  QUIET_MILLISECONDS,
  sorted,
} from './participant-summary'
import { matrixOf } from './participation-matrix'

const NOW = Date.parse('2026-11-21T12:30:00Z')

function site(name: string, changes: Partial<Participant> = {}): Participant {
  return {
    id: `par_${name}`,
    name,
    display_name: name,
    group: null,
    public_key: null,
    state: 'active',
    created_at: '2026-11-21T12:00:00Z',
    seen_at: new Date(NOW - QUIET_MILLISECONDS - 1).toISOString(),
    revoked_at: null,
    revocation_reason: null,
    ...changes,
  }
}

const MATRIX = matrixOf({
  rounds: [
    round(
      1,
      [
        ['a', 'accepted', 100, 2, 3],
        ['b', 'expired'],
        ['c', 'rejected'],
        ['d', 'accepted', 100, 4, 1],
      ],
      {
        'training.non_finite': ['c'],
      },
    ),
    round(
      2,
      [
        ['a', 'accepted', 50, 4, 2],
        ['b', 'expired'],
        ['c', 'accepted', 70],
        ['d', 'leased'],
      ],
      {},
      'open',
    ),
  ],
  displayNames: { b: 'b', d: 'd' },
})
const SITES = [
  site('b', { revoked_at: '2026-11-21T12:20:00Z', state: 'revoked' }),
  site('d'),
  site('waits', { state: 'pending', seen_at: new Date(NOW - 1000).toISOString() }),
]
const EVERYONE = participantSummaries(MATRIX, SITES, NOW)

function of(name: string): ParticipantSummary {
  const found = EVERYONE.find((summary) => summary.name === name)
  if (found === undefined) throw new Error(name)
  return found
}

test('what became of a participant is summed up', () => {
  expect(of('a')).toMatchObject({ asked: 2, accepted: 2, bytes: 150, seconds: 3, loss: 2, lastRound: 2, online: false })
  expect(of('c')).toMatchObject({
    rejected: 1,
    seconds: undefined,
    refused: { round: 1, reasons: 'training.non_finite' },
  })
  expect(of('waits')).toMatchObject({ asked: 0, lastRound: undefined, online: true, behind: undefined })
})

test('who is behind, and why', () => {
  expect(of('d').behind).toBe('round 2 waits for it: 2 of 4 have delivered')
  expect(of('b').behind).toBeUndefined() // it was removed
  const still = participantSummaries(MATRIX, [], NOW).find(({ name }) => name === 'b')
  expect(still?.behind).toBe('missed its last 2 rounds')
})

test('a participant with a lease is online, however old its last request', () => {
  expect(of('d').online).toBe(true)
  expect(participantSummaries(MATRIX, [site('a')], NOW).find(({ name }) => name === 'a')?.online).toBe(false)
})

test.each([
  ['online', ['d', 'waits']],
  ['behind', ['d']],
  ['rejected', []],
  ['pending', ['waits']],
  ['removed', ['b']],
] as const)('only those %s', (filter, names) => {
  expect(EVERYONE.filter((summary) => passes(summary, filter)).map(({ name }) => name)).toEqual(names)
})

test('sorted by any column, who has nothing there last', () => {
  const names = (order: Parameters<typeof sorted>[1]) => sorted(EVERYONE, order).map(({ name }) => name)
  expect(names('-name')).toEqual(['waits', 'd', 'c', 'b', 'a'])
  expect(names('loss')).toEqual(['d', 'a', 'b', 'c', 'waits'])
  expect(names('-loss')).toEqual(['a', 'd', 'b', 'c', 'waits'])
  expect(names('-missed')[0]).toBe('b')
})
