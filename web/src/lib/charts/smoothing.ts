import type { Value } from './chart-data'

export const SMOOTHINGS = ['light', 'medium', 'strong'] as const
export type Smoothing = (typeof SMOOTHINGS)[number]

/** Share of the average that each new value leaves: about 2, 4 and 10 rounds long. */
const WEIGHTS: Record<Smoothing, number> = { light: 0.5, medium: 0.75, strong: 0.9 }

/** Exponential moving average, without the pull towards zero that the first values would have; gaps stay gaps. */
export function smoothed(line: Value[], smoothing: Smoothing): Value[] {
  const weight = WEIGHTS[smoothing]
  let sum = 0
  let mass = 0
  return line.map((value) => {
    if (value == null) return value
    sum = weight * sum + (1 - weight) * value
    mass = weight * mass + (1 - weight)
    return sum / mass
  })
}
