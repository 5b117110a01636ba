import {
  type ChartData,
  chartData,
  isThinned,
  type Point,
  type Range,
  smoothed,
  type Smoothing,
  type XAxis,
  xOf,
} from '@/lib/charts/chart-data'

import { type Entry, type Run, stat } from './compared-runs'

/** A point of a curve. A group's mean has a deviation, and a downsampled point has bounds. */
export interface CurvePoint {
  round: number
  x: number
  value: number
  sd?: number | undefined
  bounds?: Range | undefined
}

/** Equal-length columns, x ascending, as uPlot wants them; null where a curve has no point. */
export interface Columns {
  x: number[]
  values: (number | null)[][]
  /** Empty without smoothing. */
  smooth: (number | null)[][]
  low: (number | null)[][]
  high: (number | null)[][]
  rounds: (number | null)[][]
}

/** The entry's curve of a metric: the run's own, or the mean over a group. */
export function curveOf(entry: Entry, name: string, axis: XAxis): CurvePoint[] {
  const curves = entry.runs.map((run) => runCurve(run, name, axis)).filter((curve) => curve.length > 0)
  return curves.length > 1 ? meanCurve(curves) : (curves[0] ?? [])
}

function runCurve({ experiment, series }: Run, name: string, axis: XAxis): CurvePoint[] {
  const points: Point[] = series.find((metric) => metric.name === name)?.points ?? []
  const start = experiment.started_at ?? experiment.created_at
  return points
    .flatMap((point): CurvePoint[] => {
      const { round, value, least, greatest } = point
      if (value === null) return []
      const bounds: Range | undefined = isThinned(point) ? [least ?? value, greatest ?? value] : undefined
      return [{ round, x: xOf(point, axis, start), value, ...(bounds && { bounds }) }]
    })
    .sort((a, b) => a.x - b.x || a.round - b.round)
}

/** Round by round where all curves have one: a mean over others from round to round would jump. */
export function meanCurve(curves: readonly CurvePoint[][]): CurvePoint[] {
  const byRound = curves.map((curve) => new Map(curve.map((point) => [point.round, point])))
  const rounds = [...(byRound[0]?.keys() ?? [])].sort((a, b) => a - b)
  const means = rounds.flatMap((round) => {
    const points = byRound.flatMap((curve) => curve.get(round) ?? [])
    const value = stat(points.map((point) => point.value))
    const x = stat(points.map((point) => point.x))
    if (value === undefined || x === undefined || points.length < curves.length) return []
    return [{ round, x: x.mean, value: value.mean, sd: value.sd }]
  })
  return means.sort((a, b) => a.x - b.x)
}

/** Joins curves by x. A logarithm has no place for values of 0 and less; a band that reaches there ends at its curve. */
export function columnsOf(curves: readonly CurvePoint[][], log: boolean, smoothing?: Smoothing): Columns {
  const drawn = curves.map((curve) => curve.filter(({ value }) => !log || value > 0))
  const x = [...new Set(drawn.flatMap((curve) => curve.map((point) => point.x)))].sort((a, b) => a - b)
  const byX = drawn.map((curve) => new Map(curve.map((point) => [point.x, point])))
  const pick = (value: (point: CurvePoint) => number | null) =>
    byX.map((curve) => x.map((at) => curve.get(at)).map((point) => (point === undefined ? null : value(point))))
  const low = (point: CurvePoint) => {
    const [least] = boundsOf(point) ?? [null]
    return least !== null && log && least <= 0 ? point.value : least
  }
  const averages = new Map(smoothing ? drawn.flatMap((curve) => smoothedPoints(curve, smoothing)) : [])
  return {
    x,
    values: pick(({ value }) => value),
    smooth: smoothing ? pick((point) => averages.get(point) ?? null) : [],
    low: pick(low),
    high: pick((point) => boundsOf(point)?.[1] ?? null),
    rounds: pick(({ round }) => round),
  }
}

function boundsOf({ value, sd, bounds }: CurvePoint): Range | undefined {
  return sd === undefined ? bounds : [value - sd, value + sd]
}

function smoothedPoints(curve: readonly CurvePoint[], smoothing: Smoothing): [CurvePoint, number | null][] {
  const values = smoothed(
    curve.map(({ value }) => value),
    smoothing,
  )
  return curve.map((point, index) => [point, values[index] ?? null])
}

interface Line {
  label: string
  curve: readonly CurvePoint[]
}

/** The curves' values by round; a group has its deviation in a separate column. */
export function overlayTable(lines: readonly Line[]): { names: string[]; data: ChartData } {
  const columns = lines.flatMap(({ label, curve }) => {
    const deviations = curve.flatMap(({ round, sd }) => (sd === undefined ? [] : [{ round, value: sd }]))
    return [
      { name: label, points: curve },
      ...(deviations.length > 0 ? [{ name: `${label}, sd`, points: deviations }] : []),
    ]
  })
  const points = columns.map((column) =>
    column.points.map(({ round, value }) => ({ round, value, time: '', bytes_up: 0 })),
  )
  return { names: columns.map(({ name }) => name), data: chartData(points, 'round', '') }
}
