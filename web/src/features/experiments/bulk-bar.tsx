import { Link } from '@tanstack/react-router'

import { retagExperiment, splitList } from '@/api/experiment-edit'
import type { ListedExperiment } from '@/api/types'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import { type BulkAction, CANCEL, DELETE, MOVES, useBulk } from './bulk-actions'
import type { Ticks } from './selection'

/** Actions for the selected rows. */
export function BulkBar({ ticks, reads }: { ticks: Ticks; reads: boolean }) {
  const { selected } = ticks
  if (selected.length === 0) return null
  return (
    <div className="bulk-bar" role="region" aria-label="Selected experiments">
      <Link to="/compare" search={{ ids: selected.map(({ id }) => id).join(',') }} className="button primary">
        Compare {selected.length}
      </Link>
      {!reads && <Changes ticks={ticks} />}
      <button type="button" className="button quiet" onClick={ticks.clear}>
        Clear
      </button>
    </div>
  )
}

function Changes({ ticks }: { ticks: Ticks }) {
  const { selected } = ticks
  const { running, run } = useBulk()
  const offered = (action: BulkAction) => selected.filter(action.fits)
  return (
    <>
      <TagButton selected={selected} pending={running !== undefined} onRun={run} />
      {MOVES.map((action) => {
        const fitting = offered(action)
        return (
          fitting.length > 0 && (
            <button
              key={action.label}
              type="button"
              className="button"
              disabled={running !== undefined}
              onClick={() => void run(action.label, fitting, action.run)}
            >
              {action.label} {fitting.length}
            </button>
          )
        )
      })}
      <Asked action={CANCEL} fitting={offered(CANCEL)} pending={running !== undefined} onRun={run}>
        Their open rounds end without a result, and no further round starts. Committed rounds and their checkpoints
        stay.
      </Asked>
      <Asked action={DELETE} fitting={offered(DELETE)} pending={running !== undefined} onRun={run}>
        Their rounds, curves, ledgers and checkpoints are deleted permanently. To hide them instead, archive them.
      </Asked>
      <span role="status" className="muted small">
        {running && `${running}…`}
      </span>
    </>
  )
}

interface AskedProps {
  action: BulkAction
  fitting: readonly ListedExperiment[]
  pending: boolean
  onRun: (label: string, experiments: readonly ListedExperiment[], run: BulkAction['run']) => Promise<unknown>
  children: string
}

const MOST_NAMES = 8

/** A button for an action that cannot be undone, which lists the names and needs a confirmation. */
function Asked({ action, fitting, pending, onRun, children }: AskedProps) {
  if (fitting.length === 0) return null
  const many = fitting.length === 1 ? '1 experiment' : `${fitting.length} experiments`
  return (
    <ActionDialog
      label={`${action.label} ${fitting.length}`}
      confirm={`${action.label} ${many}`}
      title={`${action.label} ${many}?`}
      dismiss="Keep"
      danger
      pending={pending}
      problem={undefined}
      onSubmit={async () => {
        await onRun(action.label, fitting, action.run)
        return true
      }}
    >
      <p>{children} This cannot be undone.</p>
      <ul className="asked-names">
        {fitting.slice(0, MOST_NAMES).map(({ id, name }) => (
          <li key={id}>{name}</li>
        ))}
        {fitting.length > MOST_NAMES && <li>and {fitting.length - MOST_NAMES} more</li>}
      </ul>
    </ActionDialog>
  )
}

interface Props {
  selected: readonly ListedExperiment[]
  pending: boolean
  onRun: (label: string, experiments: readonly ListedExperiment[], run: BulkAction['run']) => Promise<unknown>
}

/** Adds tags to all selected experiments, or removes some. */
function TagButton({ selected, pending, onRun }: Props) {
  const present = [...new Set(selected.flatMap(({ tags }) => tags))].sort()
  const submit = async (form: FormData) => {
    const more = splitList(form.get('more'))
    const fewer = form.getAll('fewer').filter((tag) => typeof tag === 'string')
    if (more.length + fewer.length > 0) await onRun('Tag', selected, ({ id }) => retagExperiment(id, more, fewer))
    return true
  }
  return (
    <ActionDialog
      label="Tag…"
      confirm="Save"
      title={`Tags of ${selected.length === 1 ? `“${selected[0]?.name ?? ''}”` : `${selected.length} experiments`}`}
      dismiss="Close"
      pending={pending}
      problem={undefined}
      onSubmit={submit}
    >
      <Field label="Add" hint="Separate tags by commas.">
        <input name="more" type="text" placeholder="hearts, K search" autoComplete="off" />
      </Field>
      {present.length > 0 && (
        <fieldset className="tag-choice">
          <legend>Remove</legend>
          {present.map((tag) => (
            <label key={tag}>
              <input type="checkbox" name="fewer" value={tag} /> {tag}
            </label>
          ))}
        </fieldset>
      )}
    </ActionDialog>
  )
}
