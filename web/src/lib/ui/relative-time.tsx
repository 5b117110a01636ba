import { formatAgo, formatTime } from '@/lib/format'

/** How long ago, or how long until, with the very time where one points at it. */
export function RelativeTime({ at, now }: { at: string; now: number }) {
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatAgo(at, now)}
    </time>
  )
}
