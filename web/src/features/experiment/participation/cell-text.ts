import { formatBytes, formatLoss, formatSeconds } from '@/lib/format'
import { NOTHING } from '@/lib/heat-map/draw'
import type { Place } from '@/lib/heat-map/layout'

import { isNotANumber, type Matrix, STATE_LABELS, stateAt } from './participation-matrix'

/** The text of a cell, in reading order. */
interface CellText {
  name: string
  displayName: string
  round: number
  state: string
  bytes: string
  duration: string
  loss: string
  reasons: string
}

const NONE = '–'

export function cellText(matrix: Matrix, { row, column }: Place): CellText {
  const place = row * matrix.rounds.length + column
  const state = stateAt(matrix, place)
  const told = (value: number | undefined, format: (value: number) => string) =>
    value === undefined || Number.isNaN(value) ? NONE : format(value)
  return {
    name: matrix.names[row] ?? '',
    displayName: matrix.displayNames[row] ?? '',
    round: matrix.rounds[column] ?? 0,
    state: state === undefined ? 'not selected' : STATE_LABELS[state],
    bytes: told(matrix.sizes[place], formatBytes),
    duration: told(matrix.seconds[place], formatSeconds),
    loss: isNotANumber(matrix, place) ? 'not a number' : told(matrix.losses[place], formatLoss),
    reasons: matrix.reasons.get(place)?.join(', ') ?? '',
  }
}

/** The cell as a sentence for screen readers, without the missing values. */
export function spoken({ displayName, round, state, bytes, duration, loss, reasons }: CellText): string {
  const told = [
    [bytes, `sent ${bytes}`],
    [duration, `trained for ${duration}`],
    [loss, `train loss ${loss}`],
  ].filter(([value]) => value !== NONE)
  const why = reasons === '' ? [] : [`refused: ${reasons}`]
  return `${displayName}, round ${round}: ${[state, ...told.map(([, text]) => text), ...why].join(', ')}`
}

const HEAD = 'participant,round,state,bytes,seconds,train_loss,refused'

/** Places of all parts, the newest round first. */
export function partsOf({ names, rounds, states }: Matrix): number[] {
  const places: number[] = []
  for (let column = rounds.length - 1; column >= 0; column -= 1) {
    for (let row = 0; row < names.length; row += 1) {
      const place = row * rounds.length + column
      if (states[place] !== NOTHING) places.push(place)
    }
  }
  return places
}

/** All parts with all their digits; participants by their names in paths and the ledger, which hold no comma. */
export function csvOf(matrix: Matrix): string {
  const { names, rounds, sizes, seconds, losses, reasons } = matrix
  const number = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : String(value))
  const lines = partsOf(matrix).map((place) => [
    names[Math.floor(place / rounds.length)],
    rounds[place % rounds.length],
    stateAt(matrix, place),
    number(sizes[place]),
    number(seconds[place]),
    isNotANumber(matrix, place) ? 'NaN' : number(losses[place]),
    reasons.get(place)?.join(' ') ?? '',
  ])
  return [HEAD, ...lines.map((line) => line.join(','))].map((line) => `${line}\r\n`).join('')
}
