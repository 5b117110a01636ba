import { colour } from './chart-colours'

const HEAD = 34

/** The plot with its title and newest values above it, on the page's ground. */
export function chartPicture(plot: HTMLCanvasElement, title: string, values: string): HTMLCanvasElement {
  const scale = window.devicePixelRatio
  const picture = document.createElement('canvas')
  picture.width = plot.width
  picture.height = plot.height + HEAD * scale
  const ctx = picture.getContext('2d')
  if (ctx === null) return plot
  ctx.fillStyle = colour('--surface')
  ctx.fillRect(0, 0, picture.width, picture.height)
  ctx.textBaseline = 'middle'
  ctx.fillStyle = colour('--text')
  ctx.font = `600 ${14 * scale}px system-ui, sans-serif`
  ctx.fillText(title, 12 * scale, (HEAD / 2) * scale)
  ctx.fillStyle = colour('--muted')
  ctx.font = `${12 * scale}px system-ui, sans-serif`
  ctx.textAlign = 'right'
  ctx.fillText(values, picture.width - 12 * scale, (HEAD / 2) * scale)
  ctx.drawImage(plot, 0, HEAD * scale)
  return picture
}
