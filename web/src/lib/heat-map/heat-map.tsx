import './heat-map.css'

import { type KeyboardEvent, type MouseEvent, useId, useRef, useState } from 'react'

import type { Cells } from './draw'
import { cellSize, cellTarget, extent, type Layout, type Place, placeAt, revealed, rowAt } from './layout'
import { useHeatMap, useWidth } from './use-heat-map'

interface Props {
  label: string
  cells: Cells
  rowNames: readonly string[]
  columnNames: readonly string[]
  /** Zoom steps of the cells above the fitting size. */
  zoom: number
  /** The cell that is read out; the caller shows what it holds. */
  cursor: Place | undefined
  onCursor: (place: Place | undefined) => void
  /** The text that screen readers announce when keys move the cursor. */
  spoken: (place: Place) => string
  onOpen: (place: Place) => void
  onOpenRow: (row: number) => void
}

const TALLEST = 460
const TOP = 24
const FULL_NAMES = 150
const SHORT_NAMES = 84
/** Of the scroller's own bar. */
const BAR = 12

/** Many cells on one canvas: it scrolls under its axes, and a cursor reads it. */
export function HeatMap(props: Props) {
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  return (
    <div className="heat-map-frame" ref={frame}>
      {width > 0 && <Sized {...props} width={width} />}
    </div>
  )
}

function Sized({ width, ...props }: Props & { width: number }) {
  const { label, cells, rowNames, columnNames, zoom, cursor, onCursor, onOpen, onOpenRow } = props
  const [said, setSaid] = useState('')
  const help = useId()
  const layout = layoutOf(cells, width, zoom)
  const whole = extent(layout)
  const height = Math.min(TALLEST, whole.height)
  const { scroller, canvas, seen, scrollTo } = useHeatMap(
    { layout, cells, rowNames, columnNames, cursor },
    Math.min(width - 2, Math.max(whole.width, 1)),
    height,
  )

  const move = (event: KeyboardEvent) => {
    if (event.altKey || event.metaKey) return
    const from = cursor ?? { row: 0, column: cells.columns - 1 }
    if (event.key === 'Enter' && cursor !== undefined) {
      event.preventDefault()
      onOpen(cursor)
    }
    const target = cellTarget(event.key, event.ctrlKey, from, cells)
    if (target === undefined) return
    event.preventDefault()
    const to = cursor === undefined ? from : target
    onCursor(to)
    setSaid(props.spoken(to))
    scrollTo(revealed(layout, seen(), to))
  }
  const pointOf = (event: MouseEvent): [number, number] => {
    const box = event.currentTarget.getBoundingClientRect()
    return [event.clientX - box.left, event.clientY - box.top]
  }
  return (
    <>
      <div
        className="heat-map"
        ref={scroller}
        role="application"
        tabIndex={0}
        aria-label={label}
        aria-describedby={help}
        style={{ height: height + (whole.width > width ? BAR : 0) + 2 }}
        onKeyDown={move}
        onMouseMove={(event) => {
          onCursor(placeAt(layout, seen(), ...pointOf(event)))
        }}
        onMouseLeave={() => {
          onCursor(undefined)
        }}
        onClick={(event) => {
          const place = placeAt(layout, seen(), ...pointOf(event))
          const row = rowAt(layout, seen(), ...pointOf(event))
          if (place !== undefined) onOpen(place)
          else if (row !== undefined) onOpenRow(row)
        }}
      >
        <div className="heat-map-extent" style={whole}>
          <canvas ref={canvas} aria-hidden style={{ width: Math.min(width - 2, whole.width), height }} />
        </div>
      </div>
      <p id={help} className="visually-hidden">
        Arrow keys move from cell to cell, and with Ctrl by ten cells. Home and End go to the ends. Enter opens a cell.
        The table below holds the values.
      </p>
      <p className="visually-hidden" role="status">
        {said}
      </p>
    </>
  )
}

function layoutOf({ rows, columns }: Cells, width: number, zoom: number): Layout {
  const left = width < 600 ? SHORT_NAMES : FULL_NAMES
  return {
    rows,
    columns,
    left,
    top: TOP,
    width: cellSize(width - left - 2 * BAR, columns, [4, 28], zoom),
    height: cellSize(TALLEST - TOP, rows, [4, 22], zoom),
  }
}
