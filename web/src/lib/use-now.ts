import { useEffect, useState } from 'react'

/** The clock in milliseconds, updated at an interval, so that "2 minutes ago" stays true. */
export function useNow(everyMilliseconds: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(Date.now())
    }, everyMilliseconds)
    return () => {
      clearInterval(timer)
    }
  }, [everyMilliseconds])
  return now
}
