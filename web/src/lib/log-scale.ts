import type { Range, Value } from './chart-data'

/** Whether a logarithmic axis can show all of it; not if there is nothing. */
export function allPositive(lines: Value[][]): boolean {
  const values = lines.flat().filter((value) => value != null)
  return values.length > 0 && values.every((value) => value > 0)
}

/** The values with a little room above and below, and a single value in the middle. */
export function logRange(low: number, high: number): Range {
  const room = Math.max((high / low) ** 0.08, low === high ? 2 : 1.02)
  return [low / room, high * room]
}

const DIGITS = [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]
const FEWEST = 4
const MOST = 6

/** Round numbers of the range: as many per power of ten as it takes to have four, and not so many that they touch. */
export function logTicks(low: number, high: number): number[] {
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
