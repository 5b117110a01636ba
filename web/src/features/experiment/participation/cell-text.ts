import { formatBytes, formatLoss, formatSeconds } from '@/lib/format'
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
