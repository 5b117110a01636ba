import { type RefObject, useEffect, useRef } from 'react'
import uPlot from 'uplot'

import { onThemeChange } from '@/lib/theme'

/** Resolves any CSS colour, variables and `light-dark()` among them, to what a canvas understands. */
export type Ink = (colour: string) => string

export interface Drawing {
  options: Omit<uPlot.Options, 'width' | 'height'>
  data: uPlot.AlignedData
}

/** Keeps a chart in the returned element: as wide as it, drawn anew when data, options or the theme change. */
export function useDrawing(draw: (ink: Ink) => Drawing, height: number): RefObject<HTMLDivElement | null> {
  const container = useRef<HTMLDivElement>(null)

  useEffect(() => {
    const element = container.current
    if (element === null) return
    let plot: uPlot | undefined
    const redraw = () => {
      plot?.destroy()
      const { options, data } = draw(inkOf(element))
      plot = new uPlot({ ...options, width: element.clientWidth, height }, data, element)
    }
    redraw()
    const release = follow(element, redraw, () => plot?.setSize({ width: element.clientWidth, height }))
    return () => {
      release()
      plot?.destroy()
    }
  }, [draw, height])

  return container
}

function inkOf(element: HTMLElement): Ink {
  return (colour) => {
    element.style.color = colour
    const resolved = getComputedStyle(element).color
    element.style.color = ''
    return resolved
  }
}

function follow(element: HTMLElement, onTheme: () => void, onWidth: () => void): () => void {
  const widths = new ResizeObserver(onWidth)
  widths.observe(element)
  const ignoreTheme = onThemeChange(onTheme)
  return () => {
    widths.disconnect()
    ignoreTheme()
  }
}
