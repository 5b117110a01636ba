import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, type RefObject, useEffect, useRef } from 'react'

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
    <div className="table-scroll tall" tabIndex={0} role="group" aria-label={label} ref={scroller}>
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

interface VirtualRows<E extends HTMLElement> {
  scroller: RefObject<E | null>
  /** Which of the rows are in the page. */
  indexes: number[]
  /** Room of the rows before and behind them, in pixels. */
  before: number
  after: number
  /** To be given every row, with its index as `data-index`. */
  measure: (row: HTMLElement | null) => void
}

const BEYOND = 12

/** Of thousands of rows only those in sight are in the page. Rows may turn out higher than `height`; the `first` is scrolled to. */
function useVirtualRows<E extends HTMLElement>(count: number, height: number, first: number): VirtualRows<E> {
  const scroller = useRef<E>(null)
  // eslint-disable-next-line react-hooks/incompatible-library -- the compiler it warns of is not used here
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: BEYOND,
  })
  const begin = useRef(first)
  useEffect(() => {
    if (begin.current > 0) virtualizer.scrollToIndex(begin.current, { align: 'center' })
  }, [virtualizer])
  const items = virtualizer.getVirtualItems()
  return {
    scroller,
    indexes: items.map(({ index }) => index),
    before: items[0]?.start ?? 0,
    after: Math.max(0, virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0)),
    measure: virtualizer.measureElement,
  }
}
