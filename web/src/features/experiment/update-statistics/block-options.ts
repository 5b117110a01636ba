import uPlot from 'uplot'

import { distribution, logRangeOf, logTicks } from '@/lib/charts/log-scale'
import type { PlotOptions } from '@/lib/charts/use-plot'
import { colour } from '@/lib/theme'

/** A line or a row of bars over the blocks. */
export interface BlockLine {
  name: string
  /** As in a file. */
  column: string
  colour: string
  dash: number[]
  values: readonly number[]
}

interface BlockPanel {
  lines: readonly BlockLine[]
  bars: boolean
  tick: (value: number) => string
  onCursor: (index: number | null) => void
}

const LOOK: uPlot.Axis = {
  stroke: () => colour('--muted'),
  font: '12px system-ui, sans-serif',
  grid: { stroke: () => colour('--line'), width: 1 },
  ticks: { show: false },
}

/** Blocks by number on the horizontal axis, a logarithmic one upwards; what is 0 is not drawn. Dragging shows a part of
 * the blocks in all charts, a double click all of them. */
export function blockOptions(panel: () => BlockPanel): PlotOptions {
  const { lines, bars } = panel()
  return {
    padding: [12, 18, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] },
      y: {
        distr: distribution(true),
        range: () => logRangeOf(panel().lines.flatMap(({ values }) => values)),
      },
    },
    cursor: { sync: { key: 'blocks', scales: ['x', null] }, points: { size: 8 }, drag: { x: true, y: false } },
    series: [
      {},
      ...lines.map(({ name, colour: property, dash }) => ({
        label: name,
        stroke: () => colour(property),
        width: bars ? 1 : 2,
        dash,
        ...(bars
          ? {
              fill: () => colour(property),
              ...(uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.8, 40] }) }),
              points: { show: false },
            }
          : { points: { size: 5, fill: () => colour(property) } }),
      })),
    ],
    axes: [
      {
        ...LOOK,
        size: 28,
        gap: 6,
        space: 50,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
        values: (_, at) => at.map(String),
      },
      {
        ...LOOK,
        size: (_, ticks: string[] | null) => 14 + 6.5 * Math.max(2, ...(ticks ?? []).map((text) => text.length)),
        gap: 6,
        space: 30,
        values: (_, ticks) => ticks.map((tick) => panel().tick(tick)),
        splits: (_, __, low, high) => logTicks(low, high),
        filter: (_, ticks) => ticks,
      },
    ],
    hooks: {
      setCursor: [
        (plot) => {
          panel().onCursor(plot.cursor.idx ?? null)
        },
      ],
    },
  }
}
