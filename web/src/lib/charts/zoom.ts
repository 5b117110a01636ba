import type uPlot from 'uplot'

import { isThinned, type Point, type Range, type XAxis, xOf } from './chart-data'

export interface Curve {
  name: string
  points: Point[]
}

/** Rounds, both included. */
export interface Rounds {
  from: number
  to: number
}

/** "12.5,40" of an address; undefined if it is not a range. */
export function parseZoom(value: unknown): string | undefined {
  return typeof value === 'string' && zoomRange(value) !== undefined ? value : undefined
}

export function zoomRange(zoom: string | undefined): Range | undefined {
  const [low = NaN, high = NaN, ...rest] = (zoom ?? '').split(',').map((part) => (part === '' ? NaN : Number(part)))
  return Number.isFinite(low) && Number.isFinite(high) && low < high && rest.length === 0 ? [low, high] : undefined
}

/** A hundredth of a round, of a second or of a byte is finer than any screen. */
export function formatZoom(range: Range | null): string | undefined {
  return parseZoom(range?.map((end) => String(Math.round(end * 100) / 100)).join(','))
}

/** The rounds that downsampled curves cover within a part of the axis; undefined if every round has its point. */
export function thinnedRounds(
  series: readonly Curve[],
  axis: XAxis,
  start: string,
  [low, high]: Range,
): Rounds | undefined {
  const longest = series.reduce<Point[]>((most, { points }) => (points.length > most.length ? points : most), [])
  const places = longest.map((point) => xOf(point, axis, start))
  // A point covers everything between the previous point and itself.
  const shown = longest.filter((_, index) => (places[index] ?? 0) >= low && (places[index - 1] ?? -Infinity) < high)
  const [first, last] = [shown[0], shown.at(-1)]
  if (first === undefined || last === undefined || !shown.some(isThinned)) return undefined
  return { from: first.first ?? first.round, to: last.round }
}

/** The curves with finer points in those rounds. */
export function spliced<C extends Curve>(coarse: readonly C[], fine: readonly C[], { from, to }: Rounds): C[] {
  const finer = new Map(fine.map(({ name, points }) => [name, points]))
  return coarse.map((curve) => {
    const before = curve.points.filter(({ round }) => round < from)
    const after = curve.points.filter(({ round, first = round }) => first > to)
    return { ...curve, points: [...before, ...(finer.get(curve.name) ?? []), ...after] }
  })
}

/** null: back to everything. */
export type OnZoom = (range: Range | null) => void

/** A drag shorter than this is a click. */
const SHORTEST_DRAG = 8

/** The cursor's part of a chart that a drag zooms into and a double click shows whole again. */
export function zoomCursor(onZoom: () => OnZoom): uPlot.Cursor {
  return {
    drag: { setScale: false, x: true, y: false },
    bind: {
      dblclick: () => () => {
        onZoom()(null)
        return null
      },
    },
  }
}

/** For `setSelect`: reports the part of the axis that was dragged over. */
export function zoomTo(plot: uPlot, onZoom: OnZoom): void {
  const { left, width } = plot.select
  if (width < SHORTEST_DRAG) return
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  onZoom([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')])
}
