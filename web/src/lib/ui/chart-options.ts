import type uPlot from 'uplot'

import type { Range, XAxis } from '@/lib/chart-data'
import { logRange, logTicks } from '@/lib/log-scale'

import { drawMarks, type Mark } from './chart-marks'
import { colour, LINE_COLOURS } from './chart-colours'
import { X_AXIS } from './x-axis'

/** What a chart shows besides its data. */
export interface Panel {
  axis: XAxis
  /** Smallest and largest x, shared by the panels of a page. */
  range: Range
  log: boolean
  /** Whether a smoothed line follows each line, which is then faint. */
  smooth: boolean
  lines: readonly string[]
  marks: readonly Mark[]
  tick: (value: number) => string
  onCursor: (index: number | null) => void
  /** null: back to everything. */
  onZoom: (range: Range | null) => void
}

/** A drag shorter than this is a click. */
const SHORTEST_DRAG = 8

const LOOK: uPlot.Axis = {
  stroke: () => colour('--muted'),
  font: '12px system-ui, sans-serif',
  grid: { stroke: () => colour('--line'), width: 1 },
  ticks: { show: false },
}

function xAxis(axis: XAxis): uPlot.Axis {
  const { steps, tick } = X_AXIS[axis]
  return { ...LOOK, size: 28, gap: 6, space: 70, values: (_, ticks) => ticks.map(tick), ...(steps && { incrs: steps }) }
}

function yAxis({ tick, log }: Panel): uPlot.Axis {
  return {
    ...LOOK,
    // As wide as the longest text; there is none yet when uPlot asks for the first time.
    size: (_, ticks: string[] | null) => 14 + 6.5 * Math.max(2, ...(ticks ?? []).map((text) => text.length)),
    gap: 6,
    space: 30,
    values: (_, ticks) => ticks.map(tick),
    ...(log && { splits: (_, __, low, high) => logTicks(low, high), filter: (_, ticks) => ticks }),
  }
}

function line(label: string, index: number, faint: boolean): uPlot.Series {
  const stroke = () => colour(LINE_COLOURS[index] ?? '--muted')
  // Dashes tell the second line apart without colour.
  const dash = index === 0 ? [] : [6, 4]
  const points = faint ? { show: false } : { size: 5, fill: stroke }
  return { label, stroke, width: faint ? 1 : 2, alpha: faint ? 0.4 : 1, dash, points }
}

function series({ lines, smooth }: Panel): uPlot.Series[] {
  const raw = lines.map((label, index) => line(label, index, smooth))
  const smoothed = lines.map((label, index) => ({ ...line(label, index, false), points: { show: false } }))
  return [{}, ...raw, ...(smooth ? smoothed : [])]
}

function zoom(plot: uPlot, { onZoom }: Panel): void {
  const { left, width } = plot.select
  if (width < SHORTEST_DRAG) return
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  onZoom([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')])
}

const LOGARITHMIC: uPlot.Scale = {
  // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the enum is in uPlot's types alone
  distr: 3,
  // Without any value uPlot asks too.
  range: (_, low, high) => logRange(low || 1, high || 1),
}

/** `panel` is asked again for what changes during a chart's life: its range, its marks and its listeners. */
export function chartOptions(panel: () => Panel, width: number, height: number): uPlot.Options {
  const start = panel()
  return {
    width,
    height,
    padding: [12, 18, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, range: () => panel().range },
      ...(start.log && { y: LOGARITHMIC }),
    },
    cursor: {
      sync: { key: 'rounds', scales: ['x', null] },
      drag: { setScale: false, x: true, y: false },
      points: { size: 8 },
      bind: {
        dblclick: () => () => {
          panel().onZoom(null)
          return null
        },
      },
    },
    series: series(start),
    axes: [xAxis(start.axis), yAxis(start)],
    hooks: {
      setCursor: [
        (plot) => {
          panel().onCursor(plot.cursor.idx ?? null)
        },
      ],
      setSelect: [
        (plot) => {
          zoom(plot, panel())
        },
      ],
      draw: [
        (plot) => {
          const { lines, marks } = panel()
          drawMarks(plot, lines.length, marks)
        },
      ],
    },
  }
}
