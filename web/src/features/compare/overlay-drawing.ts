import type uPlot from 'uplot'

import { plainTick } from '@/lib/format'
import { logRangeOf } from '@/lib/log-scale'
import { X_AXIS } from '@/lib/ui/x-axis'

import { axis, distribution, linearRange, X_AXES } from './axes'
import { columnsOf, type CurvePoint } from './curves'
import { lineStyle } from './palette'
import type { Drawing, Ink } from './use-drawing'
import type { CompareAxis } from './view'

export interface Line {
  label: string
  place: number
  curve: CurvePoint[]
}

/** What the cursor is next to. */
export interface Pointed {
  label: string
  round: number
  value: number
}

export interface OverlayWanted {
  lines: readonly Line[]
  axis: CompareAxis
  log: boolean
  /** The unit, written beside the values. */
  unit: string
  onPoint: (pointed: Pointed | undefined) => void
}

/** How near the cursor has to be to a line, in pixels. */
const NEAR = 30

export function overlayDrawing(wanted: OverlayWanted, ink: Ink): Drawing {
  const { lines, log, unit } = wanted
  const columns = columnsOf(
    lines.map(({ curve }) => curve),
    log,
  )
  const x = X_AXIS[wanted.axis]
  const drawn = [columns.values, columns.low, columns.high].flat(2).filter((value) => value !== null)
  const many = columns.x.length > 200
  return {
    data: [columns.x, ...columns.values, ...columns.low, ...columns.high],
    options: {
      legend: { show: false },
      scales: {
        x: { time: false, range: () => [0, Math.max(columns.x.at(-1) ?? 0, wanted.axis === 'round' ? 1 : 10)] },
        y: { distr: distribution(log), range: () => (log ? logRangeOf(drawn) : linearRange(drawn, false)) },
      },
      cursor: { drag: { setScale: false, x: false, y: false }, points: { show: false }, focus: { prox: NEAR } },
      focus: { alpha: 0.25 },
      series: [{}, ...lines.map((line) => series(line, ink, many)), ...edges(lines), ...edges(lines)],
      bands: lines.map(({ place }, index) => ({
        series: [1 + 2 * lines.length + index, 1 + lines.length + index],
        fill: `color-mix(in srgb, ${ink(lineStyle(place).colour)} 16%, transparent)`,
      })),
      axes: [
        axis(ink, { label: X_AXES[wanted.axis].label, tick: x.tick, steps: x.steps, size: 32 }),
        axis(ink, { label: unit, tick: plainTick, size: 58, log }),
      ],
      hooks: {
        setCursor: [
          (plot) => {
            const { line = -1, index = -1, value } = nearest(plot, columns.values) ?? {}
            const label = lines[line]?.label
            const round = columns.rounds[line]?.[index]
            wanted.onPoint(
              label === undefined || round == null || value === undefined ? undefined : { label, round, value },
            )
          },
        ],
      },
    },
  }
}

function series({ label, place }: Line, ink: Ink, many: boolean): uPlot.Series {
  const { colour, dash } = lineStyle(place)
  const stroke = ink(colour)
  return { label, stroke, width: 2, dash: [...dash], spanGaps: true, points: { show: !many, size: 5, fill: stroke } }
}

/** The edges of bands, which are not drawn themselves. */
function edges(lines: readonly Line[]): uPlot.Series[] {
  return lines.map(() => ({ width: 0, spanGaps: true, points: { show: false } }))
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
