/** One value of a metric: the round it belongs to, when it was measured and the bytes sent until then. */
export interface Point {
  round: number
  value: number
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
  const values = lines.map((line) => new Map(line.map((point) => [point.round, finite(point.value)])))
  return {
    x: order.map((row) => row.x),
    rounds: order.map((row) => row.round),
    lines: values.map((line) => order.map((row) => line.get(row.round))),
  }
}

/** JSON has no NaN: the server sends null for it. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

/** How many values a line has that can be drawn. */
export function countOf(line: Value[] | undefined): number {
  return (line ?? []).filter((value) => value != null).length
}

/** Running totals, in the order of rounds. */
export function cumulative(points: Point[]): Point[] {
  let total = 0
  return [...points].sort((a, b) => a.round - b.round).map((point) => ({ ...point, value: (total += point.value) }))
}

/** The range that all panels share, so that synced cursors stand one above the other. */
export function sharedRange(charts: ChartData[], axis: XAxis): Range {
  const first = axis === 'clock' ? Math.min(...charts.map((chart) => chart.x[0] ?? Infinity)) : 0
  const low = Number.isFinite(first) ? first : 0
  return [low, Math.max(low + SMALLEST_SPAN[axis], ...charts.map((chart) => chart.x.at(-1) ?? 0))]
}

/** First and last index that lie in the range; null if none does. */
export function within(x: number[], [low, high]: Range): Range | null {
  const first = x.findIndex((value) => value >= low)
  const last = x.findLastIndex((value) => value <= high)
  return first === -1 || last < first ? null : [first, last]
}
