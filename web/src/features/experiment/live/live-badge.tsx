import type { LiveStatus } from './use-live'

const EXPLANATION = {
  connecting: 'Connecting to the server',
  live: 'This page updates as the experiment runs',
  reconnecting: 'The live connection is lost and tried again; until it is back this page asks every few seconds',
  polling: 'No live connection for now: this page asks the server every few seconds',
  finished: 'The experiment has ended',
  stale: 'The server cannot be reached: this page is of that time, and goes on by itself once the server is back',
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
