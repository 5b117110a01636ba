import type { Experiment } from '@/api/types'
import { formatAgo, formatTime } from '@/lib/format'
import { Notice } from '@/lib/ui/notice'
import { useNow } from '@/lib/use-now'

/** Why an unfinished experiment does not move, and what to do. */
export function Standstill({ experiment: { state, stalled } }: { experiment: Experiment }) {
  const now = useNow(10_000)
  if (state === 'paused') {
    return (
      <Notice title="Paused" testId="paused">
        <p>Nobody is given work, and the open round keeps the time it has left. What was accepted stays.</p>
        <p>
          <strong>What to do next:</strong> press Resume, and it goes on where it was.
        </p>
      </Notice>
    )
  }
  if (!stalled) return null
  return (
    <Notice title="Nothing moves" testId="stalled">
      <p>{stalled.detail}</p>
      <p className="muted small">
        <code>{stalled.code}</code>
        {' · since '}
        <time dateTime={stalled.since} title={formatTime(stalled.since)}>
          {formatAgo(stalled.since, now)}
        </time>
        {' · it goes on by itself once this is mended'}
      </p>
    </Notice>
  )
}
