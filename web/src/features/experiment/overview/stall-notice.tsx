import type { Experiment } from '@/api/types'
import { formatAgo, formatTime } from '@/lib/format'
import { Notice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'

/** Shows why an unfinished experiment makes no progress, and the next step. */
export function StallNotice({ experiment: { state, stalled } }: { experiment: Experiment }) {
  const now = useNow(10_000)
  if (state === 'paused') {
    return (
      <Notice title="Paused" testId="paused">
        <p>No work is handed out, and the open round keeps its remaining time. Accepted contributions are kept.</p>
        <p>
          <strong>What to do next:</strong> press Resume to continue where it stopped.
        </p>
      </Notice>
    )
  }
  if (!stalled) return null
  return (
    <Notice title="No progress" testId="stalled">
      <p>{stalled.detail}</p>
      <p className="muted small">
        <code>{stalled.code}</code>
        {' · since '}
        <time dateTime={stalled.since} title={formatTime(stalled.since)}>
          {formatAgo(stalled.since, now)}
        </time>
        {' · it continues by itself once this is fixed'}
      </p>
    </Notice>
  )
}
