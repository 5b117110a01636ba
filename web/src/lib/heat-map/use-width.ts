import { type RefObject, useLayoutEffect, useState } from 'react'

/** How wide an element is inside, in CSS pixels, whenever that changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const measured = element.current
    if (measured === null) return
    const observer = new ResizeObserver(() => {
      setWidth(measured.clientWidth)
    })
    observer.observe(measured)
    return () => {
      observer.disconnect()
    }
  }, [element])
  return width
}
