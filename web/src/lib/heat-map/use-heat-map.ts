import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'

import { onThemeChange } from '@/lib/theme'

import { type Cells, draw, type Ink, paint } from './draw'
import type { Layout, Place, Window } from './layout'

interface Shown {
  layout: Layout
  cells: Cells
  rowNames: readonly string[]
  columnNames: readonly string[]
  cursor: Place | undefined
}

interface HeatMapCanvas {
  scroller: RefObject<HTMLDivElement | null>
  canvas: RefObject<HTMLCanvasElement | null>
  /** The visible part at this moment. */
  seen: () => Window
  scrollTo: (to: { x: number; y: number }) => void
}

/** Keeps a canvas as large as its scroller, and drawn: with the next frame after anything has changed, once for all. */
export function useHeatMap(shown: Shown, width: number, height: number): HeatMapCanvas {
  const scroller = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const image = useRef<HTMLCanvasElement>(null)
  const latest = useRef(shown)
  const frame = useRef(0)

  const seen = (): Window => {
    const element = scroller.current
    return { x: element?.scrollLeft ?? 0, y: element?.scrollTop ?? 0, width, height }
  }

  const redraw = useRef(() => {
    /* until it is mounted */
  })
  useLayoutEffect(() => {
    redraw.current = () => {
      const context = canvas.current?.getContext('2d')
      if (!context || !image.current || !scroller.current) return
      const { devicePixelRatio: ratio } = window
      fit(context.canvas, width, height, ratio)
      draw(context, { ...latest.current, seen: seen(), ratio, image: image.current, ink: inkOf(scroller.current) })
    }
  })
  const later = useRef(() => {
    cancelAnimationFrame(frame.current)
    frame.current = requestAnimationFrame(() => {
      redraw.current()
    })
  })

  const { cells } = shown
  useLayoutEffect(() => {
    image.current = pictureOf(cells)
  }, [cells])

  useLayoutEffect(() => {
    latest.current = shown
    later.current()
  })

  useEffect(() => {
    const element = scroller.current
    const drawLater = later.current
    element?.addEventListener('scroll', drawLater, { passive: true })
    const ignoreTheme = onThemeChange(drawLater)
    return () => {
      element?.removeEventListener('scroll', drawLater)
      ignoreTheme()
      cancelAnimationFrame(frame.current)
    }
  }, [])

  return {
    scroller,
    canvas,
    seen,
    scrollTo: ({ x, y }) => {
      scroller.current?.scrollTo(x, y)
    },
  }
}

function pictureOf(cells: Cells): HTMLCanvasElement {
  const picture = document.createElement('canvas')
  picture.width = Math.max(1, cells.columns)
  picture.height = Math.max(1, cells.rows)
  const context = picture.getContext('2d')
  if (context && cells.columns > 0 && cells.rows > 0) {
    const pixels = context.createImageData(cells.columns, cells.rows)
    paint(cells, pixels.data)
    context.putImageData(pixels, 0, 0)
  }
  return picture
}

function fit(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)]
  if (canvas.width === columns && canvas.height === rows) return
  canvas.width = columns
  canvas.height = rows
}

function inkOf(element: HTMLElement): Ink {
  const style = getComputedStyle(element)
  const of = (property: string) => style.getPropertyValue(property)
  return {
    ground: of('--surface'),
    text: of('--text'),
    muted: of('--muted'),
    line: of('--line'),
    sign: of('--surface'),
    font: `12px ${style.fontFamily}`,
  }
}

/** How wide an element is inside, in CSS pixels, whenever that changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const measured = element.current
    if (measured === null) return
    const observer = new ResizeObserver(() => {
      setWidth(measured.clientWidth)
    })
    observer.observe(measured)
    return () => {
      observer.disconnect()
    }
  }, [element])
  return width
}
