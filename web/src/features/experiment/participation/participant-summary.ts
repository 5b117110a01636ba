import type { Participant } from '@/api/types'

import { type Matrix, type PartState, STATES } from './participation-matrix'

/** Which participants are shown; all if none is named. */
export const FILTERS = ['online', 'behind', 'rejected', 'pending', 'removed'] as const
export type Filter = (typeof FILTERS)[number]

/** One participant over the rounds that are loaded. */
export interface ParticipantSummary {
  name: string
  displayName: string
  /** The participant that joined; undefined for a simulated one. */
  participant: Participant | undefined
  asked: number
  accepted: number
  rejected: number
  missed: number
  bytes: number
  /** Mean of the reported values. */
  seconds: number | undefined
  /** The loss of the newest round that reports one. */
  loss: number | undefined
  lastRound: number | undefined
  lastState: PartState | undefined
  /** The reason of the last refusal, and its round. */
  refused: { round: number; reasons: string } | undefined
  online: boolean
  /** The reason for being behind; undefined if it is not. */
  behind: string | undefined
}

/** A participant is online if it trains or requested work within this time. The server notes waiting ones once a minute. */
export const QUIET_MILLISECONDS = 180_000

export function participantSummaries(
  matrix: Matrix,
  participants: readonly Participant[],
  now: number,
): ParticipantSummary[] {
  const known = new Map(participants.map((participant) => [participant.name, participant]))
  const delivered = matrix.rounds.map((_, column) => share(matrix, column))
  const seen = matrix.names.map((name, row) => summary(matrix, row, known.get(name), delivered, now))
  const names = new Set(matrix.names)
  const unseen = participants.filter(({ name }) => !names.has(name))
  return [...seen, ...unseen.map((participant) => unasked(participant, now))]
}

/** The delivered part of a round. */
interface Share {
  accepted: number
  asked: number
}

function share({ states, names, rounds }: Matrix, column: number): Share {
  const found = { accepted: 0, asked: 0 }
  for (let row = 0; row < names.length; row += 1) {
    const state = STATES[states[row * rounds.length + column] ?? 255]
    if (state === undefined) continue
    found.asked += 1
    if (state === 'accepted') found.accepted += 1
  }
  return found
}

function unasked(participant: Participant, now: number): ParticipantSummary {
  return {
    name: participant.name,
    displayName: participant.display_name,
    participant,
    asked: 0,
    accepted: 0,
    rejected: 0,
    missed: 0,
    bytes: 0,
    seconds: undefined,
    loss: undefined,
    lastRound: undefined,
    lastState: undefined,
    refused: undefined,
    online: isOnline(participant, undefined, now),
    behind: undefined,
  }
}

function summary(
  matrix: Matrix,
  row: number,
  participant: Participant | undefined,
  delivered: readonly Share[],
  now: number,
): ParticipantSummary {
  const { rounds, states, sizes, seconds, losses, reasons } = matrix
  const counts: Record<PartState, number> = { accepted: 0, leased: 0, pending: 0, expired: 0, rejected: 0 }
  let [asked, bytes, time, timed, missedInARow] = [0, 0, 0, 0, 0]
  let [loss, last]: (number | undefined)[] = []
  let refused: ParticipantSummary['refused']
  for (let column = 0; column < rounds.length; column += 1) {
    const place = row * rounds.length + column
    const state = STATES[states[place] ?? 255]
    if (state === undefined) continue
    asked += 1
    counts[state] += 1
    last = column
    if (state === 'expired') missedInARow += 1
    else if (state === 'accepted' || state === 'rejected') missedInARow = 0
    const sent = sizes[place] ?? NaN
    if (!Number.isNaN(sent)) bytes += sent
    const took = seconds[place] ?? NaN
    if (!Number.isNaN(took)) [time, timed] = [time + took, timed + 1]
    const told = losses[place] ?? NaN
    if (!Number.isNaN(told)) loss = told
    const why = reasons.get(place)
    if (why !== undefined) refused = { round: rounds[column] ?? 0, reasons: why.join(', ') }
  }
  const lastState = last === undefined ? undefined : STATES[states[row * rounds.length + last] ?? 255]
  const removed = participant?.revoked_at != null
  return {
    name: matrix.names[row] ?? '',
    displayName: matrix.displayNames[row] ?? '',
    participant,
    asked,
    accepted: counts.accepted,
    rejected: counts.rejected,
    missed: counts.expired,
    bytes,
    seconds: timed === 0 ? undefined : time / timed,
    loss,
    lastRound: last === undefined ? undefined : rounds[last],
    lastState,
    refused,
    online: participant !== undefined && isOnline(participant, lastState, now),
    behind:
      removed || last === undefined ? undefined : behindWhy(matrix, last, lastState, missedInARow, delivered[last]),
  }
}

function isOnline({ state, seen_at: seen }: Participant, lastState: PartState | undefined, now: number): boolean {
  if (state !== 'active' && state !== 'pending') return false
  return lastState === 'leased' || now - Date.parse(seen) < QUIET_MILLISECONDS
}

function behindWhy(
  { rounds, open }: Matrix,
  column: number,
  state: PartState | undefined,
  missed: number,
  delivered: Share | undefined,
): string | undefined {
  const round = rounds[column] ?? 0
  if (missed > 0) return missed === 1 ? `missed its last round` : `missed its last ${missed} rounds`
  const waits = state === 'pending' || state === 'leased'
  if (!waits || !open[column] || delivered === undefined || 2 * delivered.accepted < delivered.asked) return undefined
  return `round ${round} waits for it: ${delivered.accepted} of ${delivered.asked} have delivered`
}

/** True if a filter shows the participant. */
export function passes(summary: ParticipantSummary, filter: Filter): boolean {
  const state = summary.participant?.state
  switch (filter) {
    case 'online':
      return summary.online
    case 'behind':
      return summary.behind !== undefined
    case 'rejected':
      return summary.refused !== undefined && summary.refused.round === summary.lastRound
    case 'pending':
      return state === 'pending'
    case 'removed':
      return state === 'revoked' || state === 'refused'
  }
}

export const COLUMNS = ['name', 'last', 'accepted', 'rejected', 'missed', 'bytes', 'duration', 'loss', 'seen'] as const
export type Column = (typeof COLUMNS)[number]

/** A column, descending with a minus before it. */
export type Order = Column | `-${Column}`
export const ORDERS: readonly Order[] = COLUMNS.flatMap((column) => [column, `-${column}` as const])

const COLLATOR = new Intl.Collator('en', { numeric: true })

const KEYS: Record<Exclude<Column, 'name'>, (summary: ParticipantSummary) => number | undefined> = {
  last: ({ lastRound }) => lastRound,
  accepted: ({ accepted }) => accepted,
  rejected: ({ rejected }) => rejected,
  missed: ({ missed }) => missed,
  bytes: ({ bytes }) => bytes,
  duration: ({ seconds }) => seconds,
  loss: ({ loss }) => loss,
  seen: ({ participant }) => participant && Date.parse(participant.seen_at),
}

/** Sorts participants; those without a value in the column come last in both directions. */
export function sorted(participantSummaries: readonly ParticipantSummary[], order: Order): ParticipantSummary[] {
  const descending = order.startsWith('-')
  const column = (descending ? order.slice(1) : order) as Column
  const byName = (a: ParticipantSummary, b: ParticipantSummary) => COLLATOR.compare(a.displayName, b.displayName)
  const sign = descending ? -1 : 1
  if (column === 'name') return [...participantSummaries].sort((a, b) => sign * byName(a, b))
  const key = KEYS[column]
  return [...participantSummaries].sort((a, b) => {
    const [left, right] = [key(a), key(b)]
    if (left === undefined || right === undefined)
      return Number(left === undefined) - Number(right === undefined) || byName(a, b)
    return sign * (left - right) || byName(a, b)
  })
}
