import { type ReactNode } from 'react'

import { useVirtualRows } from './use-virtual-rows'

interface Props {
  label: string
  head: ReactNode
  /** The number of columns, which the filler rows span. */
  columns: number
  count: number
  /** About how high a row is, in pixels. */
  height: number
  testId?: string
  /** The row that is in sight at first. */
  first?: number
  row: (index: number, place: RowPlace) => ReactNode
}

/** Attributes of a row: its number for assistive technology, and its measurement. */
export interface RowPlace {
  ref: (row: HTMLElement | null) => void
  'data-index': number
  'aria-rowindex': number
}

/** A table of any length: only rows in sight are in the page. */
export function VirtualTable({ label, head, columns, count, height, testId, first = 0, row }: Props) {
  const { scroller, indexes, before, after, measure } = useVirtualRows<HTMLDivElement>(count, height, first)
  return (
    <div className="table-scroll tall" tabIndex={0} role="region" aria-label={label} ref={scroller}>
      <table data-testid={testId} aria-rowcount={count + 1}>
        {head}
        <tbody>
          {before > 0 && <Gap columns={columns} height={before} />}
          {indexes.map((index) => row(index, { ref: measure, 'data-index': index, 'aria-rowindex': index + 2 }))}
          {after > 0 && <Gap columns={columns} height={after} />}
        </tbody>
      </table>
    </div>
  )
}

function Gap({ columns, height }: { columns: number; height: number }) {
  return (
    <tr aria-hidden className="table-gap">
      <td colSpan={columns} style={{ height }} />
    </tr>
  )
}
