import 'uplot/dist/uPlot.min.css'
import './line-chart.css'

import { type KeyboardEvent, useMemo, useState } from 'react'
import type uPlot from 'uplot'

import { keyTarget } from '@/lib/keyboard'
import { formatCounted } from '@/lib/format'

import { type ChartData, countOf, csvOf, type Range, roundsAt, type Value, within, type XAxis } from './chart-data'
import { ChartDownloads, DataTable, formatValue } from './chart-foot'
import type { Mark } from './chart-marks'
import { chartOptions } from './chart-options'
import { usePlot } from './use-plot'

const PLOT_HEIGHT = 228

interface LineChartProps {
  title: string
  unit: string
  testId: string
  /** Name of a file that holds it, without ending. */
  file: string
  axis: XAxis
  range: Range
  log: boolean
  logX: boolean
  data: ChartData
  /** The lines smoothed, or none. */
  smooth: Value[][]
  lines: readonly string[]
  /** The lines' names in a file. */
  columns: readonly string[]
  marks: readonly Mark[]
  format: (value: number) => string
  tick: (value: number) => string
  onZoom: (range: Range | null) => void
}

export function LineChart({ title, unit, testId, file, data, smooth, columns, format, ...rest }: LineChartProps) {
  const [hovered, setHovered] = useState<number | null>(null)
  const { lines, axis, range } = rest
  const columnsDrawn = useMemo((): uPlot.AlignedData => {
    const { least = [], greatest = [] } = data.thinned ?? {}
    return [data.x, ...data.lines, ...smooth, ...least, ...greatest]
  }, [data, smooth])
  const panel = { ...rest, smooth: smooth.length > 0, banded: data.thinned !== undefined, onCursor: setHovered }
  const { container, point, canvas } = usePlot({
    panel,
    options: chartOptions,
    kind: [axis, rest.log, rest.logX, panel.smooth, panel.banded, ...lines].join(),
    shown: range.join(),
    height: PLOT_HEIGHT,
    data: columnsDrawn,
  })
  const newest = data.x.length - 1
  const index = hovered !== null && hovered <= newest ? hovered : newest
  const points = Math.max(...data.lines.map(countOf))
  const values = lines.map((line, position) => ({ line, text: formatValue(data.lines[position]?.[index], format) }))
  const round = roundsAt(data, index)
  const spoken = `round ${round}: ${values.map(({ line, text }) => `${line} ${text}`).join(', ')}`

  const move = (event: KeyboardEvent) => {
    if (event.key === 'Escape') point(null)
    const shown = within(data.x, range)
    if (shown === null) return
    const [first, last] = shown
    const target = keyTarget(event.key, index - first, last - first + 1)
    if (target === undefined) return
    event.preventDefault()
    point(first + target)
  }

  return (
    <figure className="line-chart" data-testid={testId} data-points={points}>
      <figcaption>
        <h3>
          {title} <span className="chart-unit">{unit}</span>
        </h3>
        <p className="readout">
          <span className="muted">round {round}</span>
          {values.map(({ line, text }, position) => (
            <span
              key={line}
              className="readout-value"
              data-line={lines.length > 1 ? position : undefined}
              data-testid={`line-${columns[position] ?? ''}`}
              data-points={countOf(data.lines[position])}
            >
              {lines.length > 1 && <span className="muted">{line} </span>}
              {text}
            </span>
          ))}
        </p>
      </figcaption>
      <div
        className="plot"
        ref={container}
        role="slider"
        tabIndex={0}
        aria-label={`${title}, ${formatCounted(points, 'point')}; arrow keys read them, the table below holds them`}
        aria-orientation="horizontal"
        aria-valuemin={data.rounds[0]}
        aria-valuemax={data.rounds[newest]}
        aria-valuenow={data.rounds[index]}
        aria-valuetext={spoken}
        onKeyDown={move}
        onBlur={() => {
          point(null)
        }}
      />
      {points === 1 && (
        <p className="plot-single muted small">There is one point so far. The next one starts a line.</p>
      )}
      <div className="chart-foot">
        <DataTable caption={title} data={data} lines={lines} format={format} />
        <ChartDownloads {...{ title, spoken, file, canvas }} csv={() => csvOf(data, axis, columns)} />
      </div>
    </figure>
  )
}
