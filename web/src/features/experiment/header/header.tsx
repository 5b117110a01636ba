import { useQuery } from '@tanstack/react-query'

import { meQuery, onlyReads } from '@/api/account'
import { useRename } from '@/api/experiment-edit'
import { type Experiment, shownState } from '@/api/types'
import type { LiveStatus } from '@/features/experiment/live/use-live'
import { EditInPlace } from '@/lib/ui/edit-in-place'
import { RoundProgress } from '@/lib/ui/round-progress'
import { StateChip } from '@/lib/ui/state-chip'

import { Actions } from './actions'

/** The experiment's name, state and actions, in one row. */
export function Header({ experiment, live }: { experiment: Experiment; live: LiveStatus }) {
  const { name, round, rounds, archived_at: archived } = experiment
  const reads = onlyReads(useQuery(meQuery).data)
  return (
    <header className="run-header">
      {reads === false ? <EditableTitle experiment={experiment} /> : <h1>{name}</h1>}
      <div className="run-state">
        <StateChip state={shownState(experiment)} testId="experiment-state" />
        {archived === null ? <LiveBadge status={live} /> : <span className="muted small">archived</span>}
        <RoundProgress round={round} rounds={rounds} />
      </div>
      <Actions experiment={experiment} />
    </header>
  )
}

function EditableTitle({ experiment }: { experiment: Experiment }) {
  return (
    <EditInPlace {...useRename(experiment)}>
      <h1>{experiment.name}</h1>
    </EditInPlace>
  )
}

const EXPLANATION = {
  connecting: 'Connecting to the server',
  live: 'This page updates as the experiment runs',
  reconnecting: 'The live connection is lost. The page reconnects, and until then it refreshes every few seconds',
  polling: 'There is no live connection for now. The page refreshes every few seconds',
  finished: 'The experiment has ended',
  stale: 'The server cannot be reached. The page shows the state of that time, and refreshes once the server is back',
}

function LiveBadge({ status }: { status: LiveStatus }) {
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
