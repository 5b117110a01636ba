import type { PartsOfRounds } from '@/api/participation-matrix'
import { NOTHING } from '@/lib/heat-map/draw'

/** Outcomes of an assignment, in the order of the legend. */
export const STATES = ['accepted', 'leased', 'pending', 'expired', 'rejected'] as const
export type PartState = (typeof STATES)[number]

export const STATE_LABELS: Record<PartState, string> = {
  accepted: 'accepted',
  leased: 'training',
  pending: 'waiting',
  expired: 'missed',
  rejected: 'rejected',
}

/**
 * Participants × rounds, row by row: of the participant in row r and the round in column c the place is
 * r × columns + c. A value that was not reported is NaN.
 */
export interface Matrix {
  names: string[]
  displayNames: string[]
  real: boolean[]
  rounds: number[]
  open: boolean[]
  /** Indexes into `STATES`; `NOTHING` if the participant was not selected. */
  states: Uint8Array
  sizes: Float64Array
  seconds: Float64Array
  losses: Float64Array
  /** Reasons for refusing an upload of the participant in the round. */
  reasons: Map<number, string[]>
}

export type Figures = 'sizes' | 'seconds' | 'losses'

/** Real participants come first; all are in the order of what people call them. */
export function matrixOf({ rounds, displayNames }: PartsOfRounds): Matrix {
  const names = inOrder([...new Set(rounds.map(({ participants }) => participants))].flat(), displayNames)
  const rowOf = new Map(names.map((name, row) => [name, row]))
  const columns = rounds.length
  const size = names.length * columns
  const matrix: Matrix = {
    names,
    displayNames: names.map((name) => displayNames[name] ?? name),
    real: names.map((name) => name in displayNames),
    rounds: rounds.map(({ parts }) => parts.round),
    open: rounds.map(({ parts }) => parts.state === 'open' || parts.state === 'opening'),
    states: new Uint8Array(size).fill(NOTHING),
    sizes: new Float64Array(size).fill(NaN),
    seconds: new Float64Array(size).fill(NaN),
    losses: new Float64Array(size).fill(NaN),
    reasons: new Map(),
  }
  rounds.forEach(({ participants, states, parts }, column) => {
    const stateAt = states.map((state) => STATES.findIndex((known) => known === state))
    const placeOf = (participant: number) => (rowOf.get(participants[participant] ?? '') ?? 0) * columns + column
    parts.participants.forEach((participant, index) => {
      const place = placeOf(participant)
      matrix.states[place] = stateAt[parts.states[index] ?? -1] ?? NOTHING
      matrix.sizes[place] = parts.sizes[index] ?? NaN
      matrix.seconds[place] = parts.seconds[index] ?? NaN
      matrix.losses[place] = parts.losses[index] ?? NaN
    })
    for (const [code, refused] of Object.entries(parts.refused)) {
      for (const participant of refused) {
        const place = placeOf(participant)
        matrix.reasons.set(place, [...(matrix.reasons.get(place) ?? []), code])
      }
    }
  })
  return matrix
}

const COLLATOR = new Intl.Collator('en', { numeric: true })

function inOrder(found: readonly string[], displayNames: Record<string, string>): string[] {
  const keyed = [...new Set(found)].map((name) => ({
    name,
    real: name in displayNames,
    shown: displayNames[name] ?? name,
  }))
  keyed.sort((a, b) => Number(b.real) - Number(a.real) || COLLATOR.compare(a.shown, b.shown))
  return keyed.map(({ name }) => name)
}

export function stateAt(matrix: Matrix, place: number): PartState | undefined {
  return STATES[matrix.states[place] ?? NOTHING]
}

/** True if an upload was refused because of values that are not finite. */
export function isNotANumber(matrix: Matrix, place: number): boolean {
  return matrix.reasons.get(place)?.some((code) => code.endsWith('.non_finite')) ?? false
}

const MOST_CELLS = 400_000
const [FEWEST, MOST] = [5, 2000]

/** The number of rounds that are loaded at once, which falls with the number of participants. */
export function windowOf(participants: number): number {
  return Math.min(MOST, Math.max(FEWEST, Math.floor(MOST_CELLS / Math.max(1, participants))))
}

/** The round before the newest `step` rounds. */
export function firstRound(last: number, step: number): number {
  return Math.max(0, last - step)
}
