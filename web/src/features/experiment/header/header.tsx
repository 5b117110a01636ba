import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { meQuery, onlyReads } from '@/api/account'
import { useRename } from '@/api/experiment-edit'
import { type Experiment, shownState } from '@/api/types'
import { LiveBadge } from '@/features/experiment/live/live-badge'
import type { LiveStatus } from '@/features/experiment/live/use-live'
import { CopyButton } from '@/lib/ui/copy-button'
import { EditInPlace } from '@/lib/ui/edit-in-place'
import { StateChip } from '@/lib/ui/state-chip'

import { Actions } from './actions'
import { TagsAndNotes } from './tags-and-notes'

/** The experiment's name, tags, state and actions. */
export function Header({ experiment, live }: { experiment: Experiment; live: LiveStatus }) {
  const { id, name, project, cloned_from: original, archived_at: archived } = experiment
  const reads = onlyReads(useQuery(meQuery).data)
  return (
    <header className="page-header">
      <div>
        <nav aria-label="Breadcrumb" className="small">
          <Link to="/">Experiments</Link>
          {' · '}
          <Link to="/compare" search={{ ids: id }}>
            Compare with…
          </Link>
          {' · '}
          <Link to="/alerts" search={{ project }}>
            Alerts
          </Link>
        </nav>
        {reads === false ? <EditableTitle experiment={experiment} /> : <h1>{name}</h1>}
        <p className="experiment-id muted small">
          <code>{id}</code>
          <CopyButton text={id} label="experiment id" />
          {original !== null && (
            <>
              {' cloned from '}
              <Link to="/experiments/$id" params={{ id: original }}>
                <code>{original}</code>
              </Link>
            </>
          )}
        </p>
        <TagsAndNotes experiment={experiment} reads={reads !== false} />
      </div>
      <div className="page-actions">
        <div className="page-status">
          <StateChip state={shownState(experiment)} testId="experiment-state" />
          {archived === null ? <LiveBadge status={live} /> : <span className="muted small">archived</span>}
        </div>
        <Actions experiment={experiment} />
      </div>
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
