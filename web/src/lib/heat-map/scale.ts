/** Red, green and blue, from 0 to 255. */
export type Rgb = readonly [number, number, number]

/**
 * Viridis (https://bids.github.io/colormap/): read alike by people of every colour vision and without colour, since
 * its lightness rises evenly. Its ends that would drown in the ground are left out.
 */
const STOPS: readonly Rgb[] = [
  [68, 1, 84],
  [71, 45, 123],
  [59, 82, 139],
  [44, 114, 142],
  [33, 145, 140],
  [40, 174, 128],
  [94, 201, 98],
  [173, 220, 48],
  [253, 231, 37],
]
const LIGHT_GROUND: readonly [number, number] = [0.74, 0]
const DARK_GROUND: readonly [number, number] = [0.3, 1]

/** How many colours a scale has. */
export const SHADES = 64

/** From low to high: away from the ground. */
export function shades(dark: boolean): Rgb[] {
  const [low, high] = dark ? DARK_GROUND : LIGHT_GROUND
  return Array.from({ length: SHADES }, (_, index) => viridis(low + ((high - low) * index) / (SHADES - 1)))
}

function viridis(at: number): Rgb {
  const position = at * (STOPS.length - 1)
  const index = Math.min(STOPS.length - 2, Math.floor(position))
  const [from, to] = [STOPS[index] ?? [0, 0, 0], STOPS[index + 1] ?? [0, 0, 0]]
  const mix = (channel: 0 | 1 | 2) => Math.round(from[channel] + (to[channel] - from[channel]) * (position - index))
  return [mix(0), mix(1), mix(2)]
}

/** The range of a scale; values beyond it have the colour of its end. */
export interface Domain {
  low: number
  high: number
  log: boolean
}

/** Share of the values that may be beyond either end, because outliers would leave one colour to all others. */
const BEYOND = 0.02
/** A scale that spans more than this factor is logarithmic. */
const WIDE = 50

/** The domain of the values that are numbers; undefined without numbers. */
export function domainOf(values: Float64Array): Domain | undefined {
  const sorted = values.filter(Number.isFinite).sort()
  if (sorted.length === 0) return undefined
  const at = (part: number) => sorted[Math.round(part * (sorted.length - 1))] ?? 0
  const [low, high] = [at(BEYOND), at(1 - BEYOND)]
  return { low, high, log: low > 0 && high / low > WIDE }
}

/** The shade of a value, from 0 to `SHADES` − 1; one of a kind has the middle one. */
export function shadeOf(value: number, { low, high, log }: Domain): number {
  if (high <= low) return value < low ? 0 : value > high ? SHADES - 1 : SHADES >> 1
  const part = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)
  return value <= low ? 0 : Math.min(SHADES - 1, Math.floor(part * SHADES))
}
