import type { LiveStatus } from './use-live'

const EXPLANATION = {
  connecting: 'Connecting to the server',
  live: 'This page updates as the experiment runs',
  reconnecting: 'The live connection is lost. The page reconnects, and until then it refreshes every few seconds',
  polling: 'There is no live connection for now. The page refreshes every few seconds',
  finished: 'The experiment has ended',
  stale: 'The server cannot be reached. The page shows the state of that time, and refreshes once the server is back',
}

export function LiveBadge({ status }: { status: LiveStatus }) {
  const kind = isStale(status) ? 'stale' : status
  return (
    <span className="live-badge" role="status" data-status={kind} data-testid="live-badge" title={EXPLANATION[kind]}>
      {status}
    </span>
  )
}

function isStale(status: LiveStatus): status is `stale since ${string}` {
  return status.startsWith('stale')
}
