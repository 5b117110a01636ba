import { useState } from 'react'

import { download } from '@/lib/download'
import { colour } from '@/lib/theme'
import { TableHead } from '@/lib/ui/table-head'

import { type ChartData, roundsAt, type Value } from './chart-data'

interface Props {
  caption: string
  data: ChartData
  lines: readonly string[]
  format: (value: number) => string
}

/** The same values as a chart, for screen readers and for reading exact figures. */
export function DataTable({ caption, data, lines, format }: Props) {
  const [open, setOpen] = useState(false)
  return (
    <details
      className="data-table"
      onToggle={(event) => {
        setOpen(event.currentTarget.open)
      }}
    >
      <summary>Values</summary>
      {/* Its rows are drawn when they are seen: a chart draws itself again with every move of the pointer. */}
      {open && <Rows {...{ caption, data, lines, format }} />}
    </details>
  )
}

function Rows({ caption, data, lines, format }: Props) {
  return (
    <div className="data-table-scroll" tabIndex={0} role="group" aria-label={`${caption}, values`}>
      <table>
        <caption className="visually-hidden">{caption} by round</caption>
        <TableHead columns={['Round', ...lines]} numbers={lines} />
        <tbody>
          {data.rounds.map((round, row) => (
            <tr key={round}>
              <th scope="row">{roundsAt(data, row)}</th>
              {data.lines.map((line, column) => (
                <td key={lines[column]} className="number">
                  {formatValue(line[row], format)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A value as text, with a dash for a missing one. */
export function formatValue(value: Value, format: (value: number) => string): string {
  if (value === null) return 'not a number'
  return value === undefined ? '–' : format(value)
}

interface ChartDownloadsProps {
  title: string
  /** The values under the cursor, for the picture. */
  spoken: string
  file: string
  csv: () => string
  canvas: () => HTMLCanvasElement | undefined
}

export function ChartDownloads({ title, spoken, file, csv, canvas }: ChartDownloadsProps) {
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

/** A note that the server has downsampled the curves. */
export function DownsampledNote({ rounds }: { rounds: number }) {
  if (rounds === 1) return null
  return (
    <p className="muted small thinned-note" data-testid="thinned">
      Each point is the mean of up to {rounds} rounds; the band spans their minimum and maximum. Zoom in for finer
      points.
    </p>
  )
}
