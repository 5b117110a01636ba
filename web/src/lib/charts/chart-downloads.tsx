import { download } from '@/lib/download'

import { chartPicture } from './chart-picture'

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
