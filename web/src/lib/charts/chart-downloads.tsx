import { download } from '@/lib/download'

import { colour } from './chart-colours'

interface Props {
  title: string
  /** The values under the cursor, for the picture. */
  spoken: string
  file: string
  csv: () => string
  canvas: () => HTMLCanvasElement | undefined
}

export function ChartDownloads({ title, spoken, file, csv, canvas }: Props) {
  const saveValues = () => {
    download(`${file}.csv`, new Blob([csv()], { type: 'text/csv' }))
  }
  const savePicture = () => {
    const plot = canvas()
    if (plot === undefined) return
    chartPicture(plot, title, spoken).toBlob((picture) => {
      if (picture) download(`${file}.png`, picture)
    })
  }
  return (
    <span className="chart-downloads">
      <button type="button" className="copy-button" aria-label={`${title} as CSV`} onClick={saveValues}>
        CSV
      </button>
      <button type="button" className="copy-button" aria-label={`${title} as PNG`} onClick={savePicture}>
        PNG
      </button>
    </span>
  )
}

const HEAD = 34

/** The plot with its title and newest values above it, on the page's ground. */
function chartPicture(plot: HTMLCanvasElement, title: string, values: string): HTMLCanvasElement {
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
