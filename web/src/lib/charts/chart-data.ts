/**
 * One value of a metric: the round it belongs to, when it was measured and the bytes sent until then. Where the server
 * has thinned out, it is the mean of `count` values from the round `first` on, between the least and the greatest.
 */
export interface Point {
  round: number
  first?: number
  value: number | null
  least?: number | null
  greatest?: number | null
  count?: number
  time: string
  bytes_up: number
}

/** Rounds, seconds since the start, the clock on the wall, bytes sent so far. */
export const X_AXES = ['round', 'time', 'clock', 'bytes'] as const
export type XAxis = (typeof X_AXES)[number]

/** null: a value that is not a number, a gap in the line; undefined: nothing was measured there, and the line goes on. */
export type Value = number | null | undefined

/** Equal-length columns, x ascending, as uPlot wants them. */
export interface ChartData {
  x: number[]
  rounds: number[]
  lines: Value[][]
  /** For downsampled points: the first round of each, and the bounds of the lines' values. */
  thinned?: { firsts: number[]; least: Value[][]; greatest: Value[][] }
}

export type Range = [number, number]

const SMALLEST_SPAN: Record<XAxis, number> = { round: 1, time: 10, clock: 10, bytes: 1000 }

/** Where a point is on the axis: round number, seconds since `start`, seconds since 1970, or cumulative bytes sent. */
export function xOf(point: Point, axis: XAxis, start: string): number {
  if (axis === 'round') return point.round
  if (axis === 'bytes') return point.bytes_up
  const time = Date.parse(point.time) / 1000
  return axis === 'clock' ? time : Math.max(0, time - Date.parse(start) / 1000)
}

/** Joins lines by round, since a chart's columns share one x. */
export function chartData(lines: Point[][], axis: XAxis, start: string): ChartData {
  const byRound = new Map(lines.flat().map((point) => [point.round, point]))
  const order = [...byRound.values()]
    .map((point) => ({ round: point.round, x: xOf(point, axis, start) }))
    .sort((a, b) => a.x - b.x || a.round - b.round)
  const rounds = order.map(({ round }) => round)
  const column = (line: Point[], value: (point: Point) => number | null) => {
    const values = new Map(line.map((point) => [point.round, finite(value(point))]))
    return rounds.map((round) => values.get(round))
  }
  const columns = (value: (point: Point) => number | null) => lines.map((line) => column(line, value))
  const data = { x: order.map(({ x }) => x), rounds, lines: columns(({ value }) => value) }
  if (!lines.flat().some(isThinned)) return data
  return {
    ...data,
    thinned: {
      firsts: rounds.map((round) => byRound.get(round)?.first ?? round),
      least: columns(({ least, value }) => least ?? value),
      greatest: columns(({ greatest, value }) => greatest ?? value),
    },
  }
}

export function isThinned({ count = 1 }: Point): boolean {
  return count > 1
}

/** "7", or "1–16" if a point covers several rounds. */
export function roundsAt({ rounds, thinned }: ChartData, index: number): string {
  const [first, last] = [thinned?.firsts[index], rounds[index]]
  return first === undefined || first === last ? String(last ?? 0) : `${first}–${last ?? 0}`
}

/** JSON has no NaN: the server sends null for it. */
function finite(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null
}

/** How many values a line has that can be drawn. */
export function countOf(line: Value[] | undefined): number {
  return (line ?? []).filter((value) => value != null).length
}

/** The sum of all values that a point covers. */
export function sumOf({ value, count = 1 }: Pick<Point, 'value' | 'count'>): number {
  return (value ?? 0) * count
}

/** Running totals, in the order of rounds, each at the end of its point. */
export function cumulative(points: Point[]): Point[] {
  let total = 0
  return [...points]
    .sort((a, b) => a.round - b.round)
    .map(({ round, time, bytes_up, ...point }) => ({ round, time, bytes_up, value: (total += sumOf(point)) }))
}

/** The range that all panels share, so that synced cursors line up. */
export function sharedRange(charts: ChartData[], axis: XAxis): Range {
  const first = axis === 'clock' ? Math.min(...charts.map((chart) => chart.x[0] ?? Infinity)) : 0
  const low = Number.isFinite(first) ? first : 0
  return [low, Math.max(low + SMALLEST_SPAN[axis], ...charts.map((chart) => chart.x.at(-1) ?? 0))]
}

/** First and last index in the range; null without any. */
export function within(x: number[], [low, high]: Range): Range | null {
  const first = x.findIndex((value) => value >= low)
  const last = x.findLastIndex((value) => value <= high)
  return first === -1 || last < first ? null : [first, last]
}

const X_COLUMN: Record<Exclude<XAxis, 'round'>, string> = {
  time: 'seconds',
  clock: 'time',
  bytes: 'bytes_up_so_far',
}

/** A chart's values with all their digits: round, place on the axis, one column per line, and its bounds if thinned out. */
export function csvOf(data: ChartData, axis: XAxis, columns: readonly string[]): string {
  const { thinned } = data
  const bounds = thinned ? [thinned.least, thinned.greatest] : []
  const head = [
    ...(thinned ? ['first_round'] : []),
    'round',
    ...(axis === 'round' ? [] : [X_COLUMN[axis]]),
    ...columns,
    ...(thinned ? ['min', 'max'].flatMap((bound) => columns.map((column) => `${column}_${bound}`)) : []),
  ]
  const rows = data.rounds.map((round, row) => [
    ...(thinned ? [String(thinned.firsts[row])] : []),
    String(round),
    ...(axis === 'round' ? [] : [csvPlace(data.x[row] ?? 0, axis)]),
    ...[data.lines, ...bounds].flat().map((line) => csvCell(line[row])),
  ])
  return [head, ...rows].map((row) => `${row.join(',')}\r\n`).join('')
}

function csvPlace(x: number, axis: XAxis): string {
  return axis === 'clock' ? new Date(x * 1000).toISOString() : String(x)
}

function csvCell(value: number | null | undefined): string {
  return value === null ? 'NaN' : value === undefined ? '' : String(value)
}

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
