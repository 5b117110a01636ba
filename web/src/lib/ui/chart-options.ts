import type uPlot from 'uplot'

import type { XAxis } from '@/lib/chart-data'
import { formatBytes, formatElapsedTick } from '@/lib/format'

/** What a chart shows besides its data. */
export interface Panel {
  axis: XAxis
  /** Smallest and largest x, shared by the panels of a page. */
  range: [number, number]
  yLabel: string
  lines: readonly string[]
  tick: (value: number) => string
  onCursor: (index: number | null) => void
}

const HOUR = 3600

const X_AXIS: Record<XAxis, { label: string; steps?: number[]; tick: (value: number) => string }> = {
  round: { label: 'Round', steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5], tick: String },
  time: {
    label: 'Time since the start',
    steps: [
      1,
      2,
      5,
      10,
      15,
      30,
      60,
      120,
      300,
      600,
      900,
      1800,
      HOUR,
      2 * HOUR,
      6 * HOUR,
      12 * HOUR,
      24 * HOUR,
      120 * HOUR,
    ],
    tick: formatElapsedTick,
  },
  bytes: { label: 'Sent by participants so far', tick: formatBytes },
}

/** The lines' colours in order: custom properties, read at every drawing so that a theme switches live. */
const LINE_COLOURS = ['--accent', '--second']

function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property)
}

const LOOK: uPlot.Axis = {
  stroke: () => colour('--muted'),
  font: '12px system-ui, sans-serif',
  labelFont: '12px system-ui, sans-serif',
  labelSize: 20,
  grid: { stroke: () => colour('--line'), width: 1 },
  ticks: { show: false },
}

function xAxis(axis: XAxis): uPlot.Axis {
  const { label, steps, tick } = X_AXIS[axis]
  return { ...LOOK, label, size: 32, space: 60, values: (_, ticks) => ticks.map(tick), ...(steps && { incrs: steps }) }
}

function yAxis({ yLabel, tick }: Panel): uPlot.Axis {
  return { ...LOOK, label: yLabel, size: 58, values: (_, ticks) => ticks.map(tick) }
}

function line(label: string, index: number): uPlot.Series {
  const stroke = () => colour(LINE_COLOURS[index] ?? '--muted')
  // Dashes tell the second line apart without colour.
  return { label, stroke, width: 2, dash: index === 0 ? [] : [6, 4], spanGaps: true, points: { size: 5, fill: stroke } }
}

/** `panel` is asked again for what changes during a chart's life: its range and its listener. */
export function chartOptions(panel: () => Panel, width: number, height: number): uPlot.Options {
  const start = panel()
  return {
    width,
    height,
    legend: { show: false },
    scales: { x: { time: false, range: () => panel().range } },
    cursor: {
      sync: { key: 'rounds', scales: ['x', null] },
      drag: { setScale: false, x: false, y: false },
      points: { size: 8 },
    },
    series: [{}, ...start.lines.map(line)],
    axes: [xAxis(start.axis), yAxis(start)],
    hooks: {
      setCursor: [
        (plot) => {
          panel().onCursor(plot.cursor.idx ?? null)
        },
      ],
    },
  }
}
