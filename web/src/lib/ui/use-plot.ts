import { useEffect, useRef, type RefObject } from 'react'
import uPlot from 'uplot'

import type { ChartData } from '@/lib/chart-data'
import { onThemeChange } from '@/lib/theme'

import { chartOptions, type Panel } from './chart-options'

const HEIGHT = 220

function columns(data: ChartData): uPlot.AlignedData {
  return [data.x, ...data.lines]
}

/** Keeps one uPlot in the returned element: new per x axis, fed with new data, as wide as its element. */
export function usePlot(panel: Panel, data: ChartData): RefObject<HTMLDivElement | null> {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const latest = useRef({ panel, data })
  const [low, high] = panel.range

  useEffect(() => {
    latest.current = { panel, data }
  })

  useEffect(() => {
    const element = container.current
    if (element === null) return
    const options = chartOptions(() => latest.current.panel, element.clientWidth, HEIGHT)
    const created = new uPlot(options, columns(latest.current.data), element)
    plot.current = created
    const release = follow(created, element)
    return () => {
      release()
      created.destroy()
      plot.current = null
    }
  }, [panel.axis])

  useEffect(() => {
    plot.current?.setData(columns(data))
  }, [data, low, high])

  return container
}

/** Redraws when the element's width or the page's theme changes. */
function follow(plot: uPlot, element: HTMLElement): () => void {
  const observer = new ResizeObserver(() => {
    plot.setSize({ width: element.clientWidth, height: HEIGHT })
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
