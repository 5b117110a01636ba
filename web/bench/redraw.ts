import uPlot from 'uplot'

import { chartOptions } from '@/lib/ui/chart-options'

const WIDTH = 900
const HEIGHT = 300

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
    chartOptions(() => panel, WIDTH, HEIGHT),
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

/** What losses look like: they fall ever more slowly, and each differs from the one before by a few percent. */
function noisyLoss(progress: number, line: number): number {
  return 1 + line / 4 + 2 * Math.exp(-4 * progress) + 0.05 * Math.sin(1e9 * progress)
}

/** A canvas only notes what is to be drawn: who reads a pixel waits until it is. */
function measure(context: CanvasRenderingContext2D, act: () => void): number {
  const begin = performance.now()
  act()
  context.getImageData(0, 0, 1, 1)
  return performance.now() - begin
}
