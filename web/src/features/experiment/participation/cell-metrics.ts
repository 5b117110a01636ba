import { formatBytes, formatLoss, formatSeconds } from '@/lib/format'
import { type Cells, NOTHING, type Sign } from '@/lib/heat-map/draw'
import { type Domain, domainOf, type Rgb, shadeOf, shades, SHADES } from '@/lib/heat-map/scale'

import { type Figures, isNotANumber, type Matrix, type PartState, STATES } from './participation-matrix'

export const CELL_METRICS = [
  ['state', 'State'],
  ['bytes', 'Bytes'],
  ['duration', 'Duration'],
  ['loss', 'Loss'],
] as const
export type CellMetric = (typeof CELL_METRICS)[number][0]
export type NumericCellMetric = Exclude<CellMetric, 'state'>
export const NUMERIC_CELL_METRICS = CELL_METRICS.map(([metric]) => metric).filter((metric) => metric !== 'state')

export const FIGURES: Record<
  NumericCellMetric,
  { figures: Figures; format: (value: number) => string; title: string }
> = {
  bytes: { figures: 'sizes', format: formatBytes, title: 'Bytes sent' },
  duration: { figures: 'seconds', format: formatSeconds, title: 'Time of local training' },
  loss: { figures: 'losses', format: formatLoss, title: 'Train loss' },
}

/** After Okabe and Ito, darkened or lightened until each has a contrast of 3 : 1 with its background (WCAG 1.4.11). */
const LIGHT: Record<PartState, Rgb> = {
  accepted: [0, 114, 178],
  leased: [62, 152, 206],
  pending: [140, 137, 129],
  expired: [201, 130, 0],
  rejected: [158, 30, 12],
}
const DARK: Record<PartState, Rgb> = {
  accepted: [61, 143, 224],
  leased: [150, 212, 246],
  pending: [112, 108, 100],
  expired: [236, 190, 64],
  rejected: [255, 102, 74],
}
const NOT_A_NUMBER: Record<'light' | 'dark', Rgb> = { light: [168, 70, 155], dark: [238, 159, 212] }

const SIGNS: Partial<Record<PartState, Sign>> = { rejected: 'cross', expired: 'line', leased: 'dot' }

/** Colours after the shades of a scale: no value reported, rejected, not a number. */
export const [UNTOLD, REJECTED, NO_NUMBER] = [SHADES, SHADES + 1, SHADES + 2]

export function stateColours(dark: boolean): Record<PartState, Rgb> {
  return dark ? DARK : LIGHT
}

export function notANumberColour(dark: boolean): Rgb {
  return NOT_A_NUMBER[dark ? 'dark' : 'light']
}

interface Coloured {
  cells: Cells
  /** The domain of a numeric metric; undefined without any value. */
  domain: Domain | undefined
}

/** The matrix, coloured by a metric. */
export function coloured(matrix: Matrix, metric: CellMetric, dark: boolean): Coloured {
  const shape = { rows: matrix.names.length, columns: matrix.rounds.length }
  const states = stateColours(dark)
  if (metric === 'state') {
    const colours = STATES.map((state) => states[state])
    const signs = STATES.map((state) => SIGNS[state])
    return { cells: { ...shape, places: matrix.states, colours, signs }, domain: undefined }
  }
  const values = matrix[FIGURES[metric].figures]
  const domain = domainOf(values)
  const signs: (Sign | undefined)[] = []
  signs[REJECTED] = 'cross'
  signs[NO_NUMBER] = 'line'
  return {
    cells: {
      ...shape,
      places: Uint8Array.from(values, (value, place) => placeOf(matrix, place, value, domain, metric)),
      colours: [...shades(dark), states.pending, states.rejected, notANumberColour(dark)],
      signs,
    },
    domain,
  }
}

function placeOf(matrix: Matrix, place: number, value: number, domain: Domain | undefined, metric: CellMetric): number {
  const state = matrix.states[place] ?? NOTHING
  if (state === NOTHING) return NOTHING
  if (!Number.isNaN(value) && domain !== undefined) return shadeOf(value, domain)
  if (metric === 'loss' && isNotANumber(matrix, place)) return NO_NUMBER
  return STATES[state] === 'rejected' ? REJECTED : UNTOLD
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red} ${green} ${blue})`
}
