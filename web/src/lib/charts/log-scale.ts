import type uPlot from 'uplot'

import type { Range, Value } from './chart-data'

/** True if a logarithmic axis can show all values; false without any value. */
export function allPositive(lines: Value[][]): boolean {
  const values = lines.flat().filter((value) => value != null)
  return values.length > 0 && values.every((value) => value > 0)
}

/** The positive ones of the values with room around them. */
export function logRangeOf(values: readonly number[]): Range {
  const positive = values.filter((value) => value > 0)
  return positive.length === 0 ? [1, 10] : logRange(Math.min(...positive), Math.max(...positive))
}

/** The values with a little room above and below, and a single value in the middle. */
export function logRange(low: number, high: number): Range {
  const room = Math.max((high / low) ** 0.08, low === high ? 2 : 1.02)
  return [low / room, high * room]
}

/** The part of a range that a logarithm can show: from `least`, the first positive value, where the range begins lower. */
export function positiveRange([low, high]: Range, least: number): Range {
  if (low > 0) return [low, high]
  return high > least ? [least, high] : logRange(least, least)
}

const DIGITS = [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]
const FEWEST = 4
const MOST = 6

/**
 * Round numbers of the range: even steps within a decade; else as many per power of ten as it takes to have four, and
 * few enough that they do not touch.
 */
export function logTicks(low: number, high: number): number[] {
  if (high < 10 * low) return evenTicks(low, high)
  const powers = Array.from(
    { length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 },
    (_, index) => Math.floor(Math.log10(low)) + index,
  )
  const ticks = DIGITS.map((digits) =>
    powers
      .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)))
      .filter((tick) => tick >= low && tick <= high),
  )
  const found = ticks.find(({ length }) => length >= FEWEST) ?? ticks.at(-1) ?? []
  const step = Math.ceil(found.length / MOST)
  return found.filter((_, index) => index % step === 0)
}

function evenTicks(low: number, high: number): number[] {
  const rough = (high - low) / MOST
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10)
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: Math.max(0, count) }, (_, index) => Number(((first + index) * step).toPrecision(12)))
}

/** uPlot's numbers for a logarithm and an even scale, which its types declare without exporting them. */
export function distribution(log: boolean): uPlot.Scale.Distr {
  const number: unknown = log ? 3 : 1
  return number as uPlot.Scale.Distr
}
