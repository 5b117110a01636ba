import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useRef, useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import {
  editExperiment,
  type ReadExperiment,
  readForEdit,
  requireSame,
  splitList,
  useRename,
} from '@/api/experiment-edit'
import { type Experiment, type ExperimentChange, shownState } from '@/api/types'
import { useLifecycleAction } from '@/api/use-action'
import type { LiveStatus } from '@/features/experiment/live/use-live'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { CopyButton } from '@/lib/ui/copy-button'
import { EditInPlace } from '@/lib/ui/edit-in-place'
import { Field } from '@/lib/ui/field'
import { StateChip } from '@/lib/ui/state-chip'

import { Actions } from './actions'

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

interface Props {
  experiment: Experiment
  /** True if this user may only read. */
  reads: boolean
}

const PRIORITY_HINT = 'From 1 to 8. Priority 4 gets four training tasks for each one of an experiment with priority 1.'

/** The tags, each a way to the experiments that have it too, and the notes as they were written. */
function TagsAndNotes({ experiment, reads }: Props) {
  const { tags, notes, priority } = experiment
  return (
    <div className="remarks" data-testid="remarks">
      {tags.map((tag) => (
        <Link key={tag} to="/" search={{ tag: [tag] }} className="tag" title={`All experiments with the tag ${tag}`}>
          {tag}
        </Link>
      ))}
      {priority > 1 && (
        <span className="muted" title={PRIORITY_HINT}>
          priority {priority}
        </span>
      )}
      {!reads && <TagsAndNotesButton experiment={experiment} />}
      {notes !== '' && <p className="notes">{notes}</p>}
    </div>
  )
}

function TagsAndNotesButton({ experiment }: { experiment: Experiment }) {
  const { id, name } = experiment
  const read = useRef<Promise<ReadExperiment>>(undefined)
  const [begun, setBegun] = useState(experiment)
  const { run, pending, problem } = useLifecycleAction(id, async (change: ExperimentChange) => {
    const { experiment: now, etag } = await (read.current ?? readForEdit(id))
    requireSame(now, { tags: begun.tags, notes: begun.notes, priority: begun.priority })
    return editExperiment(id, change, etag)
  })
  const submit = (form: FormData) => {
    const notes = form.get('notes')
    return run({
      tags: splitList(form.get('tags')),
      notes: typeof notes === 'string' ? notes : '',
      priority: Number(form.get('priority')),
    })
  }
  return (
    <ActionDialog
      label="Tags, notes…"
      confirm="Save"
      title={`Tags, notes and priority of “${name}”`}
      dismiss="Close"
      pending={pending}
      problem={problem}
      onOpen={() => {
        read.current = readForEdit(id)
        setBegun(experiment)
      }}
      onSubmit={submit}
    >
      {/* The key resets the inputs if somebody else has edited the experiment meanwhile. */}
      <div key={JSON.stringify([begun.tags, begun.notes, begun.priority])}>
        <Field label="Tags" hint="Separate tags by commas.">
          <input name="tags" type="text" defaultValue={begun.tags.join(', ')} autoComplete="off" />
        </Field>
        <Field label="Notes" hint="Notes are shown as plain text.">
          <textarea name="notes" rows={8} maxLength={20_000} defaultValue={begun.notes} />
        </Field>
        <Field label="Priority" hint={PRIORITY_HINT}>
          <input name="priority" type="number" min={1} max={8} required defaultValue={begun.priority} />
        </Field>
      </div>
    </ActionDialog>
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
