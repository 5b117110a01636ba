import uPlot from 'uplot'

import { chartOptions } from '@/lib/charts/chart-options'
import { draw, NOTHING, paint } from '@/lib/heat-map/draw'

const WIDTH = 900
const HEIGHT = 300
/** The rows that a heat-map shows at once, in pixels; it scrolls to the rest. */
const TALLEST = 640

/** Milliseconds of each redraw of a chart to which one more point came. */
export function lines(series: number, points: number, times: number): number[] {
  const panel = {
    axis: 'round' as const,
    range: [0, points + times] as [number, number],
    log: false,
    smooth: false,
    banded: false,
    lines: Array.from({ length: series }, (_, index) => `line ${index}`),
    marks: [],
    tick: String,
    onCursor: () => undefined,
    onZoom: () => undefined,
  }
  const data = (count: number) => [
    Array.from({ length: count }, (_, x) => x),
    ...panel.lines.map((_, line) => Array.from({ length: count }, (_, x) => noisyLoss(x / points, line))),
  ]
  const plot = new uPlot(
    { ...chartOptions(() => panel), width: WIDTH, height: HEIGHT },
    data(points) as uPlot.AlignedData,
    document.body,
  )
  const found = Array.from({ length: times }, (_, more) => {
    const next = data(points + more + 1) as uPlot.AlignedData
    return measure(plot.ctx, () => {
      plot.batch(() => {
        plot.setData(next)
      })
    })
  })
  plot.destroy()
  return found
}

/** A loss as it looks in practice: it falls ever more slowly, and each value differs from the previous one by a few percent. */
function noisyLoss(progress: number, line: number): number {
  return 1 + line / 4 + 2 * Math.exp(-4 * progress) + 0.05 * Math.sin(1e9 * progress)
}

/** Milliseconds of each redraw of a heat-map whose cells have all changed. */
export function cells(rows: number, columns: number, times: number): number[] {
  const [canvas, context] = surface(1400, TALLEST)
  const [image, pixels] = surface(columns, rows)
  const buffer = pixels.createImageData(columns, rows)
  const colours = Array.from({ length: 64 }, (_, shade) => [shade, 2 * shade, 3 * shade] as const)
  const scene = {
    layout: { rows, columns, width: 6, height: 4, left: 120, top: 20 },
    seen: { x: 0, y: 0, width: canvas.width, height: canvas.height },
    ratio: 1,
    image,
    rowNames: Array.from({ length: rows }, (_, row) => `site-${row}`),
    columnNames: Array.from({ length: columns }, (_, column) => String(column + 1)),
    cursor: { row: 3, column: 3 },
    ink: { ground: '#fff', text: '#000', muted: '#555', line: '#ccc', sign: '#fff', font: '12px sans-serif' },
  }
  return Array.from({ length: times }, (_, time) => {
    const places = Uint8Array.from({ length: rows * columns }, (_, cell) =>
      cell % 97 === 0 ? NOTHING : (cell + time) % 64,
    )
    const shown = { rows, columns, places, colours, signs: [] }
    return measure(context, () => {
      paint(shown, buffer.data)
      pixels.putImageData(buffer, 0, 0)
      draw(context, { ...scene, cells: shown })
    })
  })
}

function surface(width: number, height: number): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width, height })
  const context = canvas.getContext('2d')
  if (context === null) throw new Error('this browser draws on no canvas')
  return [canvas, context]
}

/** A canvas only notes what is to be drawn: who reads a pixel waits until it is. */
function measure(context: CanvasRenderingContext2D, act: () => void): number {
  const begin = performance.now()
  act()
  context.getImageData(0, 0, 1, 1)
  return performance.now() - begin
}
