import { useEffect, useState } from 'react'

import { formatAgo, formatTime } from '@/lib/format'

/** A relative time such as "5 minutes ago", with the exact time as a tooltip. */
export function RelativeTime({ at, now }: { at: string; now: number }) {
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatAgo(at, now)}
    </time>
  )
}

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
