import 'uplot/dist/uPlot.min.css'
import '@/lib/charts/line-chart.css'

import { type KeyboardEvent, useMemo, useState } from 'react'
import uPlot from 'uplot'

import { ChartDownloads } from '@/lib/charts/chart-foot'
import { distribution, logRangeOf, logTicks } from '@/lib/charts/log-scale'
import { type PlotOptions, usePlot } from '@/lib/charts/use-plot'
import { formatCounted, plainTick } from '@/lib/format'
import { keyTarget } from '@/lib/keyboard'
import { colour } from '@/lib/theme'
import { TableHead } from '@/lib/ui/table-head'

const HEIGHT = 228

interface Props {
  title: string
  unit: string
  testId: string
  file: string
  blocks: readonly string[]
  lines: readonly BlockLine[]
  bars?: boolean
  format: (value: number) => string
}

/** Figures of every block in the model's order, read out by pointer or keys, as a table and as a file. */
export function BlockChart({ title, unit, testId, file, blocks, lines, bars = false, format }: Props) {
  const [hovered, setHovered] = useState<number | null>(null)
  const data = useMemo(
    (): uPlot.AlignedData => [
      blocks.map((_, index) => index + 1),
      // A logarithm has no 0.
      ...lines.map(({ values }) => values.map((value) => (value > 0 ? value : null))),
    ],
    [blocks, lines],
  )
  const { container, point, canvas } = usePlot({
    panel: { lines, bars, onCursor: setHovered },
    options: blockOptions,
    kind: [bars, ...lines.map(({ name }) => name)].join(),
    shown: '',
    height: HEIGHT,
    data,
  })
  const index = Math.min(hovered ?? 0, blocks.length - 1)
  const block = blocks[index] ?? ''
  const values = lines.map(({ name, values }) => ({ name, text: format(values[index] ?? 0) }))
  const spoken = `${block}: ${values.map(({ name, text }) => `${name} ${text}`).join(', ')}`
  const move = (event: KeyboardEvent) => {
    if (event.key === 'Escape') point(null)
    const target = keyTarget(event.key, index, blocks.length)
    if (target === undefined) return
    event.preventDefault()
    point(target)
  }
  return (
    <figure className="line-chart" data-testid={testId} data-points={blocks.length}>
      <figcaption>
        <h3>
          {title} <span className="chart-unit">{unit}</span>
        </h3>
        <p className="readout">
          <span className="muted update-block">{block}</span>
          {values.map(({ name, text }, position) => (
            <span key={name} className="readout-value" style={{ color: `var(${lines[position]?.colour ?? '--text'})` }}>
              {lines.length > 1 && <span className="muted">{name} </span>}
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
        aria-label={`${title}, ${formatCounted(blocks.length, 'block')}; arrow keys read them, the table below holds them`}
        aria-orientation="horizontal"
        aria-valuemin={1}
        aria-valuemax={blocks.length}
        aria-valuenow={index + 1}
        aria-valuetext={spoken}
        onKeyDown={move}
        onBlur={() => {
          point(null)
        }}
      />
      <div className="chart-foot">
        <BlockTable {...{ title, blocks, lines, format }} />
        <ChartDownloads {...{ title, spoken, file, canvas }} csv={() => blocksCsv(blocks, lines)} />
      </div>
    </figure>
  )
}

function BlockTable({ title, blocks, lines, format }: Pick<Props, 'title' | 'blocks' | 'lines' | 'format'>) {
  const names = lines.map(({ name }) => name)
  return (
    <details className="data-table">
      <summary>Values</summary>
      <div className="data-table-scroll" tabIndex={0} role="group" aria-label={`${title}, values`}>
        <table>
          <caption className="visually-hidden">{title} by block</caption>
          <TableHead columns={['Block', ...names]} numbers={names} />
          <tbody>
            {blocks.map((block, row) => (
              <tr key={block}>
                <th scope="row">{block}</th>
                {lines.map(({ name, values }) => (
                  <td key={name} className="number">
                    {format(values[row] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

function blocksCsv(blocks: readonly string[], lines: readonly BlockLine[]): string {
  const head = ['block', ...lines.map(({ column }) => column)]
  const rows = blocks.map((block, row) => [
    `"${block.replaceAll('"', '""')}"`,
    ...lines.map(({ values }) => String(values[row] ?? '')),
  ])
  return [head, ...rows].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/** A line or a row of bars over the blocks. */
export interface BlockLine {
  name: string
  /** As in a file. */
  column: string
  colour: string
  dash: number[]
  values: readonly number[]
}

interface BlockPanel {
  lines: readonly BlockLine[]
  bars: boolean
  onCursor: (index: number | null) => void
}

const LOOK: uPlot.Axis = {
  stroke: () => colour('--muted'),
  font: '12px system-ui, sans-serif',
  grid: { stroke: () => colour('--line'), width: 1 },
  ticks: { show: false },
}

/** Blocks by number on the horizontal axis, a logarithmic one upwards; what is 0 is not drawn. Dragging shows a part of
 * the blocks in all charts, a double click all of them. */
function blockOptions(panel: () => BlockPanel): PlotOptions {
  const { lines, bars } = panel()
  return {
    padding: [12, 18, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] },
      y: {
        distr: distribution(true),
        range: () => logRangeOf(panel().lines.flatMap(({ values }) => values)),
      },
    },
    cursor: { sync: { key: 'blocks', scales: ['x', null] }, points: { size: 8 }, drag: { x: true, y: false } },
    series: [
      {},
      ...lines.map(({ name, colour: property, dash }) => ({
        label: name,
        stroke: () => colour(property),
        width: bars ? 1 : 2,
        dash,
        ...(bars
          ? {
              fill: () => colour(property),
              ...(uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.8, 40] }) }),
              points: { show: false },
            }
          : { points: { size: 5, fill: () => colour(property) } }),
      })),
    ],
    axes: [
      {
        ...LOOK,
        size: 28,
        gap: 6,
        space: 50,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
        values: (_, at) => at.map(String),
      },
      {
        ...LOOK,
        size: (_, ticks: string[] | null) => 14 + 6.5 * Math.max(2, ...(ticks ?? []).map((text) => text.length)),
        gap: 6,
        space: 30,
        values: (_, ticks) => ticks.map(plainTick),
        splits: (_, __, low, high) => logTicks(low, high),
        filter: (_, ticks) => ticks,
      },
    ],
    hooks: {
      setCursor: [
        (plot) => {
          panel().onCursor(plot.cursor.idx ?? null)
        },
      ],
    },
  }
}
