import type uPlot from 'uplot'

import { byteTick, clockTicks, formatElapsedTick, plainTick } from '@/lib/format'
import { colour, LINE_COLOURS } from '@/lib/theme'

import type { Range, XAxis } from './chart-data'
import { drawMarks, type Mark } from './chart-marks'
import { distribution, logRange, logTicks } from './log-scale'
import type { PlotOptions } from './use-plot'
import { type OnZoom, zoomCursor, zoomTo } from './zoom'

const HOUR = 3600

const TIMES = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800],
  ...[HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 120 * HOUR],
]

const each = (tick: (value: number) => string) => (ticks: readonly number[]) => ticks.map(tick)

export const plainTicks = each(plainTick)

/** The steps and tick labels of each horizontal axis. Different ticks have different labels. */
export const X_AXIS: Record<XAxis, { steps?: number[]; labels: (ticks: readonly number[]) => string[] }> = {
  round: { steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5], labels: each(String) },
  time: { steps: TIMES, labels: each(formatElapsedTick) },
  clock: { steps: TIMES, labels: clockTicks },
  bytes: { labels: each(byteTick) },
}

/** The properties of a chart apart from its data. */
interface Panel {
  axis: XAxis
  /** Smallest and largest x, shared by the panels of a page. */
  range: Range
  log: boolean
  /** True if the horizontal axis is logarithmic; its range is then positive. */
  logX: boolean
  /** True if a smoothed line follows each line, which is then faint. */
  smooth: boolean
  /** True if the edges of a band around each line come last. */
  banded: boolean
  lines: readonly string[]
  marks: readonly Mark[]
  tick: (value: number) => string
  onCursor: (index: number | null) => void
  onZoom: OnZoom
}

const LOOK: uPlot.Axis = {
  stroke: () => colour('--muted'),
  font: '12px system-ui, sans-serif',
  grid: { stroke: () => colour('--line'), width: 1 },
  ticks: { show: false },
}

function xAxis({ axis, logX }: Panel): uPlot.Axis {
  const { steps, labels } = X_AXIS[axis]
  return {
    ...LOOK,
    ...{ size: 28, gap: 6, space: 70, values: (_, ticks) => labels(ticks) },
    ...(logX ? logarithmicX(axis) : steps && { incrs: steps }),
  }
}

const TICK_PIXELS = 60

/** Without ticks that are so near to the one before that their labels would touch. */
function spaced(plot: uPlot, ticks: number[]): number[] {
  return ticks.reduce<number[]>((kept, tick) => {
    const last = kept.at(-1)
    const near = last !== undefined && plot.valToPos(tick, 'x') - plot.valToPos(last, 'x') < TICK_PIXELS
    return near ? kept : [...kept, tick]
  }, [])
}

/** A round is a whole number. */
export function logarithmicX(axis: XAxis): Pick<uPlot.Axis, 'splits' | 'filter'> {
  const isTick = (tick: number) => axis !== 'round' || Number.isInteger(tick)
  return {
    splits: (plot, _, low, high) => spaced(plot, logTicks(low, high).filter(isTick)),
    filter: (_, ticks) => ticks,
  }
}

function yAxis({ tick, log }: Panel): uPlot.Axis {
  return {
    ...LOOK,
    // As wide as the longest text. uPlot's first call has no texts yet.
    size: (_, ticks: string[] | null) => 14 + 6.5 * Math.max(2, ...(ticks ?? []).map((text) => text.length)),
    gap: 6,
    space: 30,
    values: (_, ticks) => ticks.map(tick),
    ...(log && { splits: (_, __, low, high) => logTicks(low, high), filter: (_, ticks) => ticks }),
  }
}

function line(label: string, index: number, faint: boolean): uPlot.Series {
  const stroke = () => colour(LINE_COLOURS[index] ?? '--muted')
  // Dashes distinguish the second line without colour.
  const dash = index === 0 ? [] : [6, 4]
  const points = faint ? { show: false } : { size: 5, fill: stroke }
  return { label, stroke, width: faint ? 1 : 2, alpha: faint ? 0.4 : 1, dash, points }
}

function series({ lines, smooth, banded }: Panel): uPlot.Series[] {
  const raw = lines.map((label, index) => line(label, index, smooth))
  const smoothed = lines.map((label, index) => ({ ...line(label, index, false), points: { show: false } }))
  const edges = [...lines, ...lines].map(() => ({ width: 0, points: { show: false } }))
  return [{}, ...raw, ...(smooth ? smoothed : []), ...(banded ? edges : [])]
}

/** Between the edges, which are all lines' lower ones and then all lines' upper ones. */
function bands({ lines, smooth, banded }: Panel): uPlot.Band[] {
  if (!banded) return []
  const first = 1 + lines.length * (smooth ? 2 : 1)
  return lines.map((_, index) => ({
    series: [first + lines.length + index, first + index],
    fill: () => `color-mix(in srgb, ${colour(LINE_COLOURS[index] ?? '--muted')} 18%, transparent)`,
  }))
}

const LOGARITHMIC: uPlot.Scale = {
  distr: distribution(true),
  // uPlot also calls it without any value.
  range: (_, low, high) => logRange(low || 1, high || 1),
}

/** `panel` is called again for properties that change during a chart's life: its range, marks and listeners. */
export function chartOptions(panel: () => Panel): PlotOptions {
  const start = panel()
  return {
    padding: [12, 18, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, distr: distribution(start.logX), range: () => panel().range },
      ...(start.log && { y: LOGARITHMIC }),
    },
    cursor: {
      sync: { key: 'rounds', scales: ['x', null] },
      points: { size: 8 },
      ...zoomCursor(() => panel().onZoom),
    },
    series: series(start),
    bands: bands(start),
    axes: [xAxis(start), yAxis(start)],
    hooks: {
      setCursor: [
        (plot) => {
          panel().onCursor(plot.cursor.idx ?? null)
        },
      ],
      setSelect: [
        (plot) => {
          zoomTo(plot, panel().onZoom)
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
