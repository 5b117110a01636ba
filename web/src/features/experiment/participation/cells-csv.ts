import { NOTHING } from '@/lib/heat-map/draw'

import { isNotANumber, type Matrix, stateAt } from './participation-matrix'

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
