import type { LiveStatus } from './use-live'

const EXPLANATION: Record<LiveStatus, string> = {
  connecting: 'Opening the stream of events',
  live: 'This page follows the experiment as it happens',
  reconnecting: 'The stream broke; what you see may be out of date until it is back',
  finished: 'Nothing more will happen to this experiment',
}

export function LiveBadge({ status }: { status: LiveStatus }) {
  return (
    <span
      className="live-badge"
      role="status"
      data-status={status}
      data-testid="live-badge"
      title={EXPLANATION[status]}
    >
      {status}
    </span>
  )
}
