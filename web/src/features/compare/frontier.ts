import type uPlot from 'uplot'

import { plainTicks, X_AXIS } from '@/lib/charts/chart-options'
import { distribution, logRangeOf } from '@/lib/charts/log-scale'
import type { Ink, PlotOptions } from '@/lib/charts/use-plot'

import { axis, linearRange } from './axes'
import { type Entry, type Stat, stat } from './compared-runs'
import type { Better, Metric } from './metric'
import { lineStyle } from './palette'
import { bestOf, bytesEach, bytesTotal, type Way } from './result-cells'

export interface FrontierPoint {
  entry: Entry
  bytes: number
  best: Stat
  /** No other sends fewer bytes and is as good. */
  onFront: boolean
}

/** The best value against bytes, for runs with both, by rising bytes. */
export function frontierPoints(
  entries: readonly Entry[],
  metric: Metric & { better: Better },
  { way, total }: { way: Way; total: boolean },
): FrontierPoint[] {
  const bytesOf = total ? bytesTotal : bytesEach
  const points = entries.flatMap((entry) => {
    const bytes = stat(entry.runs.map((run) => bytesOf(run, way)))?.mean
    const best = stat(entry.runs.map((run) => bestOf(run, metric)))
    return bytes === undefined || bytes <= 0 || best === undefined ? [] : [{ entry, bytes, best }]
  })
  const front = paretoFront(
    points.map(({ bytes, best }) => ({ x: bytes, y: best.mean })),
    metric.better,
  )
  return points.map((point, index) => ({ ...point, onFront: front.includes(index) })).sort((a, b) => a.bytes - b.bytes)
}

interface Place {
  x: number
  y: number
}

/** Indices of the points on the Pareto frontier, by rising x: less x is always better. */
export function paretoFront(points: readonly Place[], better: Better): number[] {
  const sign = better === 'low' ? 1 : -1
  const ordered = points
    .map(({ x, y }, index) => ({ x, cost: sign * y, index }))
    .sort((a, b) => a.x - b.x || a.cost - b.cost)
  let least = Infinity
  return ordered.flatMap(({ cost, index }) => {
    if (cost >= least) return []
    least = cost
    return [index]
  })
}

interface FrontierWanted {
  points: readonly FrontierPoint[]
  log: boolean
  xLabel: string
  yLabel: string
}

const SIZE = 11

/** Charts of the same kind differ in their data alone. */
export function frontierKind({ points, log, xLabel, yLabel }: FrontierWanted): string {
  return [log, xLabel, yLabel, ...points.map(({ entry, onFront }) => `${entry.place}:${onFront ? 'front' : ''}`)].join()
}

/** One series per point, so that each has its colour; before them the front. */
export function frontierData(points: readonly FrontierPoint[]): uPlot.AlignedData {
  const x = points.map(({ bytes }) => bytes)
  const means = points.map(({ best }) => best.mean)
  const front = points.map(({ onFront, best }) => (onFront ? best.mean : null))
  return [x, front, ...points.map((_, index) => means.map((mean, at) => (at === index ? mean : null)))]
}

/** The front is a staircase: fewer bytes than a step's are never as good. */
export function frontierOptions(wanted: () => FrontierWanted, ink: Ink): PlotOptions {
  const { points, log, xLabel, yLabel } = wanted()
  const bytes = () => wanted().points.map((point) => point.bytes)
  return {
    legend: { show: false },
    scales: {
      x: {
        time: false,
        distr: distribution(log),
        range: () => (log ? logRangeOf(bytes()) : linearRange(bytes(), true)),
      },
      y: { range: () => linearRange(spread(wanted().points), false) },
    },
    cursor: { show: false },
    series: [{}, staircase(ink), ...points.map((point) => dot(point, ink))],
    axes: [
      axis(ink, { label: xLabel, labels: X_AXIS.bytes.labels, size: 32, log }),
      axis(ink, { label: yLabel, labels: plainTicks, size: 58 }),
    ],
    hooks: {
      draw: [
        (plot) => {
          for (const point of wanted().points) annotate(plot, point, ink)
        },
      ],
    },
  }
}

function spread(points: readonly FrontierPoint[]): number[] {
  return points.flatMap(({ best: { mean, sd = 0 } }) => [mean - sd, mean + sd])
}

function staircase(ink: Ink): uPlot.Series {
  return {
    stroke: () => ink('var(--muted)'),
    width: 1,
    dash: [4, 4],
    spanGaps: true,
    paths: steps,
    points: { show: false },
  }
}

/** Right, then up or down: a budget between two points buys the cheaper one. */
function steps(plot: uPlot, seriesIndex: number): uPlot.Series.Paths {
  const stroke = new Path2D()
  let before: number | undefined
  plot.data[0].forEach((bytes, index) => {
    const value = plot.data[seriesIndex]?.[index]
    if (value == null) return
    const [left, top] = [plot.valToPos(bytes, 'x', true), plot.valToPos(value, 'y', true)]
    if (before === undefined) stroke.moveTo(left, top)
    else {
      stroke.lineTo(left, before)
      stroke.lineTo(left, top)
    }
    before = top
  })
  if (before !== undefined) stroke.lineTo(plot.bbox.left + plot.bbox.width, before)
  return { stroke }
}

/** Full on the front, hollow behind it. */
function dot({ entry, onFront }: FrontierPoint, ink: Ink): uPlot.Series {
  const stroke = () => ink(lineStyle(entry.place).colour)
  const fill = onFront ? stroke : () => ink('var(--surface)')
  return { stroke, width: 0, points: { show: true, size: SIZE, width: 2, stroke, fill } }
}

/** Draws the run's number next to its point, and a group's deviation as a bar. */
function annotate(plot: uPlot, { entry, bytes, best }: FrontierPoint, ink: Ink): void {
  const { ctx } = plot
  const ratio = devicePixelRatio
  const at = (value: number) => plot.valToPos(value, 'y', true)
  const left = plot.valToPos(bytes, 'x', true)
  ctx.save()
  ctx.fillStyle = ink('var(--text)')
  ctx.font = `${12 * ratio}px system-ui, sans-serif`
  ctx.textBaseline = 'bottom'
  ctx.fillText(String(entry.place + 1), left + 8 * ratio, at(best.mean) - 4 * ratio)
  if (best.sd !== undefined) {
    ctx.strokeStyle = ink(lineStyle(entry.place).colour)
    ctx.lineWidth = 1.5 * ratio
    ctx.beginPath()
    ctx.moveTo(left, at(best.mean - best.sd))
    ctx.lineTo(left, at(best.mean + best.sd))
    ctx.stroke()
  }
  ctx.restore()
}
