import { formatAgo, formatTime } from '@/lib/format'

/** A relative time such as "5 minutes ago", with the exact time as a tooltip. */
export function RelativeTime({ at, now }: { at: string; now: number }) {
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatAgo(at, now)}
    </time>
  )
}
