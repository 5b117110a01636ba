import { Link } from '@tanstack/react-router'

import type { ListedExperiment } from '@/api/types'
import { ActionDialog } from '@/lib/ui/action-dialog'

import { type BulkAction, CANCEL, DELETE, MOVES, useBulk } from './bulk-actions'
import type { Ticks } from './selection'
import { TagButton } from './tag-button'

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
  const perform = async (label: string, fitting: readonly ListedExperiment[], action: BulkAction['run']) => {
    const failed = await run(label, fitting, action)
    if (label === DELETE.label)
      ticks.tickAll(
        fitting.filter(({ id }) => !failed.includes(id)),
        false,
      )
  }
  const offered = (action: BulkAction) => selected.filter(action.fits)
  return (
    <>
      <TagButton selected={selected} pending={running !== undefined} onRun={perform} />
      {MOVES.map((action) => {
        const fitting = offered(action)
        return (
          fitting.length > 0 && (
            <button
              key={action.label}
              type="button"
              className="button"
              disabled={running !== undefined}
              onClick={() => void perform(action.label, fitting, action.run)}
            >
              {action.label} {fitting.length}
            </button>
          )
        )
      })}
      <Asked action={CANCEL} fitting={offered(CANCEL)} pending={running !== undefined} onRun={perform}>
        Their open rounds end without a result, and no further round starts. Committed rounds and their checkpoints
        stay.
      </Asked>
      <Asked action={DELETE} fitting={offered(DELETE)} pending={running !== undefined} onRun={perform}>
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
  onRun: (label: string, experiments: readonly ListedExperiment[], run: BulkAction['run']) => Promise<void>
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
