import { type RefObject, useEffect, useRef } from 'react'
import uPlot from 'uplot'

import { onThemeChange } from '@/lib/theme'

/** Resolves any CSS colour, variables and `light-dark()` among them, to what a canvas understands. */
export type Ink = (colour: string) => string

export type PlotOptions = Omit<uPlot.Options, 'width' | 'height'>

interface Wanted<P> {
  /** The chart's properties, which `options` read again at every drawing. */
  panel: P
  options: (panel: () => P, ink: Ink) => PlotOptions
  /** A change of kind creates a new chart; a chart of the same kind only gets new data. */
  kind: string
  /** Changes with every property of the panel that needs a redraw. */
  shown: string
  /** In pixels. */
  height: number
  data: uPlot.AlignedData
}

interface Plot {
  container: RefObject<HTMLDivElement | null>
  /** Puts the cursor, here and in the synced charts, on a point; null takes it away. */
  point: (index: number | null) => void
  canvas: () => HTMLCanvasElement | undefined
}

/** Keeps one uPlot in the returned element, as wide as it; drawn again when its panel, its data or the theme change. */
export function usePlot<P>({ panel, options, kind, shown, height, data }: Wanted<P>): Plot {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const latest = useRef({ panel, options, data })

  useEffect(() => {
    latest.current = { panel, options, data }
  })

  useEffect(() => {
    const element = container.current
    if (element === null) return
    const { options, data } = latest.current
    const made = options(() => latest.current.panel, inkOf(element))
    const created = new uPlot({ ...made, width: element.clientWidth, height }, data, element)
    plot.current = created
    const release = follow(created, element, height)
    return () => {
      release()
      created.destroy()
      plot.current = null
    }
  }, [kind, height])

  useEffect(() => {
    plot.current?.setData(data)
  }, [data, shown])

  return {
    container,
    point: (index) => {
      if (plot.current) pointAt(plot.current, index)
    },
    canvas: () => plot.current?.ctx.canvas,
  }
}

function inkOf(element: HTMLElement): Ink {
  return (colour) => {
    element.style.color = colour
    const resolved = getComputedStyle(element).color
    element.style.color = ''
    return resolved
  }
}

/** uPlot takes a third argument that its types omit: true also moves the cursor of synced charts. */
type Publishing = uPlot & { setCursor: (at: { left: number; top: number }, fire: boolean, publish: boolean) => void }

function pointAt(plot: uPlot, index: number | null): void {
  const x = index === null ? undefined : plot.data[0][index]
  const left = x === undefined ? -10 : plot.valToPos(x, 'x')
  ;(plot as Publishing).setCursor({ left, top: x === undefined ? -10 : 1 }, true, true)
}

/** Redraws when the element's width or the page's theme changes. */
function follow(plot: uPlot, element: HTMLElement, height: number): () => void {
  const observer = new ResizeObserver(() => {
    plot.setSize({ width: element.clientWidth, height })
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
