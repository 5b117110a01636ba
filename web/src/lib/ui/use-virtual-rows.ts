import { useVirtualizer } from '@tanstack/react-virtual'
import { type RefObject, useEffect, useRef } from 'react'

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
export function useVirtualRows<E extends HTMLElement>(count: number, height: number, first: number): VirtualRows<E> {
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
