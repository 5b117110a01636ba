import { type RefObject, useEffect, useRef } from 'react'
import uPlot from 'uplot'

import type { ChartData, Value } from '@/lib/chart-data'
import { onThemeChange } from '@/lib/theme'

import { chartOptions, type Panel } from './chart-options'

export const PLOT_HEIGHT = 228

export interface Plot {
  container: RefObject<HTMLDivElement | null>
  /** Puts the cursor, here and in the synced charts, on a point; null takes it away. */
  point: (index: number | null) => void
  canvas: () => HTMLCanvasElement | undefined
}

function columns(data: ChartData, smooth: Value[][]): uPlot.AlignedData {
  return [data.x, ...data.lines, ...smooth]
}

/** Keeps one uPlot in the returned element: new per kind of axis, fed with new data, as wide as its element. */
export function usePlot(panel: Panel, data: ChartData, smooth: Value[][]): Plot {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const latest = useRef({ panel, data, smooth })
  const [low, high] = panel.range
  const kind = [panel.axis, panel.log, panel.smooth, ...panel.lines].join()

  useEffect(() => {
    latest.current = { panel, data, smooth }
  })

  useEffect(() => {
    const element = container.current
    if (element === null) return
    const { data, smooth } = latest.current
    const options = chartOptions(() => latest.current.panel, element.clientWidth, PLOT_HEIGHT)
    const created = new uPlot(options, columns(data, smooth), element)
    plot.current = created
    const release = follow(created, element)
    return () => {
      release()
      created.destroy()
      plot.current = null
    }
  }, [kind])

  useEffect(() => {
    plot.current?.setData(columns(data, smooth))
  }, [data, smooth, low, high])

  return {
    container,
    point: (index) => {
      if (plot.current) pointAt(plot.current, index)
    },
    canvas: () => plot.current?.ctx.canvas,
  }
}

/** uPlot takes a third argument that its types do not name: whether the charts that share the cursor are told. */
type Publishing = uPlot & { setCursor: (at: { left: number; top: number }, fire: boolean, publish: boolean) => void }

function pointAt(plot: uPlot, index: number | null): void {
  const x = index === null ? undefined : plot.data[0][index]
  const left = x === undefined ? -10 : plot.valToPos(x, 'x')
  ;(plot as Publishing).setCursor({ left, top: x === undefined ? -10 : 1 }, true, true)
}

/** Redraws when the element's width or the page's theme changes. */
function follow(plot: uPlot, element: HTMLElement): () => void {
  const observer = new ResizeObserver(() => {
    plot.setSize({ width: element.clientWidth, height: PLOT_HEIGHT })
  })
  observer.observe(element)
  const ignoreTheme = onThemeChange(() => {
    plot.redraw()
  })
  return () => {
    ignoreTheme()
    observer.disconnect()
  }
}
