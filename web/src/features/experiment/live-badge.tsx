import type { LiveStatus } from './use-live'

const EXPLANATION: Record<LiveStatus, string> = {
  connecting: 'Connecting to the server',
  live: 'This page updates as the experiment runs',
  reconnecting: 'The connection is lost; this page may be out of date until it is back',
  finished: 'The experiment has ended',
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
