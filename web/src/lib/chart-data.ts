/** One value of a metric: the round it belongs to, when it was measured and the bytes sent until then. */
export interface Point {
  round: number
  value: number
  time: string
  bytes_up: number
}

export const X_AXES = ['round', 'time', 'bytes'] as const
export type XAxis = (typeof X_AXES)[number]

/** Equal-length columns, x ascending, as uPlot wants them; null where a line has no value. */
export interface ChartData {
  x: number[]
  rounds: number[]
  lines: (number | null)[][]
}

const SMALLEST_SPAN: Record<XAxis, number> = { round: 1, time: 10, bytes: 1000 }

/** Where a point is on the axis: round number, seconds since `start`, or cumulative bytes sent. */
export function xOf(point: Point, axis: XAxis, start: string): number {
  if (axis === 'round') return point.round
  if (axis === 'bytes') return point.bytes_up
  return Math.max(0, (Date.parse(point.time) - Date.parse(start)) / 1000)
}

/** Joins lines by round, since a chart's columns share one x. */
export function chartData(lines: Point[][], axis: XAxis, start: string): ChartData {
  const first = new Map(lines.flat().map((point) => [point.round, point]))
  const order = [...first.values()]
    .map((point) => ({ round: point.round, x: xOf(point, axis, start) }))
    .sort((a, b) => a.x - b.x || a.round - b.round)
  const values = lines.map((line) => new Map(line.map((point) => [point.round, point.value])))
  return {
    x: order.map((row) => row.x),
    rounds: order.map((row) => row.round),
    lines: values.map((line) => order.map((row) => line.get(row.round) ?? null)),
  }
}

/** Running totals, in the order of rounds. */
export function cumulative(points: Point[]): Point[] {
  let total = 0
  return [...points].sort((a, b) => a.round - b.round).map((point) => ({ ...point, value: (total += point.value) }))
}

/** The range that all panels share, so that synced cursors stand one above the other. */
export function sharedRange(charts: ChartData[], axis: XAxis): [number, number] {
  return [0, Math.max(SMALLEST_SPAN[axis], ...charts.map((chart) => chart.x.at(-1) ?? 0))]
}
