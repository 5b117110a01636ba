import 'uplot/dist/uPlot.min.css'
import './line-chart.css'

import { useState } from 'react'

import type { ChartData, XAxis } from '@/lib/chart-data'

import { DataTable } from './data-table'
import { usePlot } from './use-plot'

export interface LineChartProps {
  title: string
  testId: string
  axis: XAxis
  range: [number, number]
  data: ChartData
  lines: readonly string[]
  yLabel: string
  format: (value: number) => string
  tick: (value: number) => string
  /** Why there is no point yet. */
  empty: string
}

export function LineChart({ title, testId, data, lines, format, empty, ...rest }: LineChartProps) {
  const [hovered, setHovered] = useState<number | null>(null)
  const container = usePlot({ ...rest, lines, onCursor: setHovered }, data)
  const points = Math.max(...data.lines.map((line) => line.filter((value) => value !== null).length))
  const index = hovered !== null && hovered < data.x.length ? hovered : data.x.length - 1

  return (
    <figure className="line-chart" data-testid={testId} data-points={points}>
      <figcaption>
        <h3>{title}</h3>
        {points > 0 && (
          <p className="readout">
            <span className="muted">round {data.rounds[index]}</span>
            {lines.map((line, position) => (
              <span key={line} className="readout-value" data-line={lines.length > 1 ? position : undefined}>
                {lines.length > 1 && <span className="muted">{line} </span>}
                {formatted(data.lines[position]?.[index], format)}
              </span>
            ))}
          </p>
        )}
      </figcaption>
      <div
        className="plot"
        ref={container}
        role="img"
        aria-label={`${title}, ${points} points; the table below holds them`}
      />
      {points === 0 && <p className="plot-empty muted">{empty}</p>}
      {points > 0 && <DataTable caption={title} data={data} lines={lines} format={format} />}
    </figure>
  )
}

function formatted(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}
