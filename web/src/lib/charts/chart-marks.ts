import type uPlot from 'uplot'

import { colour, LINE_COLOURS } from '@/lib/theme'

/** A point of a line with a name: the base model, the best round. */
export interface Mark {
  line: number
  index: number
  text: string
}

const FONT = '11px system-ui, sans-serif'

/** Rings around the named points, and a cross at the bottom wherever a line has a value that is not a number. */
export function drawMarks(plot: uPlot, lines: number, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot
  const scale = window.devicePixelRatio
  ctx.save()
  ctx.setLineDash([])
  ctx.globalAlpha = 1
  ctx.lineWidth = 2 * scale
  ctx.font = FONT.replace(/^\d+/, (size) => String(Number(size) * scale))
  for (const mark of marks) drawMark(plot, mark, scale)
  ctx.strokeStyle = colour('--danger')
  for (const x of gaps(plot, lines)) cross(ctx, x, bbox.top + bbox.height - 8 * scale, 4 * scale)
  ctx.restore()
}

function drawMark(plot: uPlot, { line, index, text }: Mark, scale: number): void {
  const { ctx, bbox, data } = plot
  const value = data[line + 1]?.[index]
  const at = data[0][index]
  if (value == null || at === undefined) return
  const x = plot.valToPos(at, 'x', true)
  const y = plot.valToPos(value, 'y', true)
  if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return
  ctx.beginPath()
  ctx.arc(x, y, 5 * scale, 0, 2 * Math.PI)
  ctx.fillStyle = colour('--surface')
  ctx.fill()
  ctx.strokeStyle = colour(LINE_COLOURS[line] ?? '--muted')
  ctx.stroke()
  const left = x < bbox.left + bbox.width / 2
  const below = left ? rises(data[line + 1], index) : y < bbox.top + bbox.height / 2
  ctx.textAlign = left ? 'left' : 'right'
  ctx.textBaseline = 'middle'
  const [textX, textY] = [x + (left ? 10 : 4) * scale, y + (below ? 13 : -12) * scale]
  // A thin halo, where a line passes below it.
  ctx.strokeStyle = colour('--surface')
  ctx.lineWidth = 3 * scale
  ctx.strokeText(text, textX, textY)
  ctx.lineWidth = 2 * scale
  ctx.fillStyle = colour('--muted')
  ctx.fillText(text, textX, textY)
}

/** True if the line rises after the point, so that the name fits below it. */
function rises(values: uPlot.AlignedData[number] | undefined, index: number): boolean {
  const next = [...(values ?? [])].slice(index + 1).find((value) => value != null)
  return next != null && next > (values?.[index] ?? next)
}

function gaps(plot: uPlot, lines: number): number[] {
  return plot.data.slice(1, lines + 1).flatMap((line) =>
    [...line].flatMap((value, index) => {
      const at = plot.data[0][index]
      return value === null && at !== undefined ? [plot.valToPos(at, 'x', true)] : []
    }),
  )
}

function cross(ctx: CanvasRenderingContext2D, x: number, y: number, arm: number): void {
  ctx.beginPath()
  ctx.moveTo(x - arm, y - arm)
  ctx.lineTo(x + arm, y + arm)
  ctx.moveTo(x + arm, y - arm)
  ctx.lineTo(x - arm, y + arm)
  ctx.stroke()
}
