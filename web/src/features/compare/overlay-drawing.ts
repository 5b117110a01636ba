import type uPlot from 'uplot'

import type { Range } from '@/lib/charts/chart-data'
import { logarithmicX, plainTicks, X_AXIS } from '@/lib/charts/chart-options'
import { distribution, logRange, positiveRange } from '@/lib/charts/log-scale'
import type { Ink, PlotOptions } from '@/lib/charts/use-plot'
import { type OnZoom, zoomCursor, zoomTo } from '@/lib/charts/zoom'

import { axis, linearRange, X_AXES } from './axes'
import type { Columns } from './curves'
import { lineStyle } from './palette'
import type { CompareAxis } from './url-state'

interface Line {
  label: string
  place: number
}

/** The point next to the cursor. */
export interface Pointed {
  label: string
  round: number
  value: number
}

export interface Overlay {
  lines: readonly Line[]
  columns: Columns
  axis: CompareAxis
  log: boolean
  logX: boolean
  /** The unit of the vertical axis. */
  unit: string
  /** The visible part of the axis; everything unless given. */
  zoom: Range | undefined
  onPoint: (pointed: Pointed | undefined) => void
  onZoom: OnZoom
}

/** Maximum distance of the cursor from a line, in pixels. */
const NEAR = 30
/** Beyond this number the points are too close for dots. */
const MANY = 200

/** Charts of the same kind differ in their data and in what part of it they show. */
export function overlayKind({ lines, columns, axis, log, logX, unit }: Overlay): string {
  const styles = lines.map(({ label, place }) => `${place}:${label}`)
  return [axis, log, logX, unit, columns.smooth.length > 0, columns.x.length > MANY, ...styles].join()
}

export function overlayData({ x, values, smooth, low, high }: Columns): uPlot.AlignedData {
  return [x, ...values, ...smooth, ...low, ...high]
}

export function overlayOptions(overlay: () => Overlay, ink: Ink): PlotOptions {
  const start = overlay()
  const { lines, log, columns } = start
  const smooth = columns.smooth.length > 0
  const first = 1 + lines.length * (smooth ? 2 : 1)
  return {
    legend: { show: false },
    scales: {
      x: { time: false, distr: distribution(start.logX), range: () => xRange(overlay()) },
      y: { distr: distribution(log), range: (_, low, high) => yRange(low, high, log) },
    },
    cursor: { ...zoomCursor(() => overlay().onZoom), points: { show: false }, focus: { prox: NEAR } },
    focus: { alpha: 0.25 },
    series: [
      {},
      ...lines.map((line) => series(line, ink, smooth ? 'faint' : columns.x.length > MANY ? 'line' : 'dotted')),
      ...(smooth ? lines.map((line) => series(line, ink, 'line')) : []),
      ...edges(lines),
      ...edges(lines),
    ],
    bands: lines.map(({ place }, index) => ({
      series: [first + lines.length + index, first + index],
      fill: () => `color-mix(in srgb, ${ink(lineStyle(place).colour)} 16%, transparent)`,
    })),
    axes: [
      {
        ...axis(ink, { label: X_AXES[start.axis].label, ...X_AXIS[start.axis], size: 32 }),
        ...(start.logX && logarithmicX(start.axis)),
      },
      axis(ink, { label: start.unit, labels: plainTicks, size: 58, log }),
    ],
    hooks: {
      setCursor: [
        (plot) => {
          overlay().onPoint(pointed(plot, overlay()))
        },
      ],
      setSelect: [
        (plot) => {
          zoomTo(plot, overlay().onZoom)
        },
      ],
    },
  }
}

/** A logarithmic axis begins at the first positive x: what is at 0 is left of it. */
function xRange({ columns, axis, logX, zoom }: Overlay): Range {
  const range: Range = zoom ?? [0, Math.max(columns.x.at(-1) ?? 0, axis === 'round' ? 1 : 10)]
  return logX ? positiveRange(range, columns.x.find((x) => x > 0) ?? range[1]) : range
}

/** The range of the visible values. uPlot also calls it without any value. */
function yRange(low: number | null, high: number | null, log: boolean): Range {
  if (log) return logRange(low ?? 1, high ?? 1)
  return low === null || high === null ? [0, 1] : linearRange([low, high], false)
}

function series({ label, place }: Line, ink: Ink, look: 'faint' | 'line' | 'dotted'): uPlot.Series {
  const { colour, dash } = lineStyle(place)
  const stroke = () => ink(colour)
  const points = look === 'dotted' ? { show: true, size: 5, fill: stroke } : { show: false }
  const faint = look === 'faint'
  return { label, stroke, width: faint ? 1 : 2, alpha: faint ? 0.35 : 1, dash: [...dash], spanGaps: true, points }
}

/** The edges of bands, which are not drawn themselves. */
function edges(lines: readonly Line[]): uPlot.Series[] {
  return lines.map(() => ({ width: 0, spanGaps: true, points: { show: false } }))
}

function pointed(plot: uPlot, { lines, columns }: Overlay): Pointed | undefined {
  const { line = -1, index = -1, value } = nearest(plot, columns.values) ?? {}
  const label = lines[line]?.label
  const round = columns.rounds[line]?.[index]
  return label === undefined || round == null || value === undefined ? undefined : { label, round, value }
}

/** The point nearest to the cursor: curves have their points at different x, so all are looked at. */
function nearest(plot: uPlot, values: readonly (number | null)[][]) {
  const { left = -1, top = -1 } = plot.cursor
  if (left < 0) return undefined
  let best: { line: number; index: number; value: number } | undefined
  let least = NEAR
  const [first, last] = [left - NEAR, left + NEAR].map((pixel) => plot.posToVal(pixel, 'x'))
  values.forEach((column, line) => {
    column.forEach((value, index) => {
      const x = plot.data[0][index]
      if (value === null || x === undefined || x < (first ?? 0) || x > (last ?? 0)) return
      const distance = Math.hypot(plot.valToPos(x, 'x') - left, plot.valToPos(value, 'y') - top)
      if (distance >= least) return
      least = distance
      best = { line, index, value }
    })
  })
  return best
}
