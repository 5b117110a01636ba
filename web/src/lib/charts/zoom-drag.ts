import type uPlot from 'uplot'

import type { Range } from './chart-data'

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
