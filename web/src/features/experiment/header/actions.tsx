import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'

import { meQuery, onlyReads } from '@/api/account'
import {
  archiveExperiment,
  cancelExperiment,
  deleteExperiment,
  extendExperiment,
  pauseExperiment,
  resumeExperiment,
  unarchiveExperiment,
} from '@/api/actions'
import { LISTS_KEY } from '@/api/experiment-list'
import { experimentKey } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { useAction, useLifecycleAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'
import { MoreMenu } from '@/lib/ui/more-menu'
import { formatCounted } from '@/lib/format'

interface Props {
  experiment: Experiment
}

/** The actions that this user can take in the experiment's state. */
export function Actions({ experiment }: Props) {
  const reads = onlyReads(useQuery(meQuery).data)
  if (reads === undefined) return null
  return reads ? <OnlyReads experiment={experiment} /> : <ActionGroup experiment={experiment} />
}

function OnlyReads({ experiment }: Props) {
  return (
    <div className="actions">
      <p className="muted small" data-testid="only-reads">
        You are a viewer: a researcher can change this experiment.
      </p>
      <CompareLink experiment={experiment} />
    </div>
  )
}

function CompareLink({ experiment: { id } }: Props) {
  return (
    <Link to="/compare" search={{ ids: id }} className="button">
      Compare with…
    </Link>
  )
}

/** One primary action; the rare and the final ones are in a menu. */
function ActionGroup({ experiment }: Props) {
  const { state, archived_at: archived } = experiment
  const finished = isFinished(state)
  return (
    <div className="actions" role="group" aria-label="Actions">
      {state === 'running' && (
        <LifecycleButton id={experiment.id} label="Pause" move={() => pauseExperiment(experiment)} primary />
      )}
      {state === 'paused' && (
        <LifecycleButton id={experiment.id} label="Resume" move={() => resumeExperiment(experiment)} primary />
      )}
      {state === 'completed' && <ExtendButton experiment={experiment} primary />}
      <Link
        to="/new"
        search={{ from: experiment.id }}
        className={['queued', 'failed', 'cancelled'].includes(state) ? 'button primary' : 'button'}
      >
        Clone
      </Link>
      <MoreMenu label="More actions">
        {['running', 'paused'].includes(state) && <ExtendButton experiment={experiment} />}
        <CompareLink experiment={experiment} />
        <Link to="/alerts" search={{ project: experiment.project, experiment: experiment.id }} className="button">
          Alerts
        </Link>
        {finished && archived === null && (
          <LifecycleButton id={experiment.id} label="Archive" move={() => archiveExperiment(experiment)} />
        )}
        {finished && archived !== null && (
          <LifecycleButton id={experiment.id} label="Unarchive" move={() => unarchiveExperiment(experiment)} />
        )}
        {finished ? <DeleteButton experiment={experiment} /> : <CancelButton experiment={experiment} />}
      </MoreMenu>
    </div>
  )
}

interface LifecycleButtonProps {
  id: string
  label: string
  move: () => Promise<Experiment>
  primary?: boolean
}

function LifecycleButton({ id, label, move, primary = false }: LifecycleButtonProps) {
  const action = useLifecycleAction(id, move, label)
  return (
    <button
      type="button"
      className={primary ? 'button primary' : 'button'}
      disabled={action.pending}
      onClick={() => void action.run()}
    >
      {label}
    </button>
  )
}

function ExtendButton({ experiment, primary = false }: { experiment: Experiment; primary?: boolean }) {
  const extend = useLifecycleAction(experiment.id, (rounds: number) => extendExperiment(experiment, rounds))
  return (
    <ActionDialog
      label="Extend"
      primary={primary}
      title={`Add rounds to “${experiment.name}”`}
      dismiss="Close"
      pending={extend.pending}
      problem={extend.problem}
      onSubmit={(form) => extend.run(Number(form.get('rounds')))}
    >
      <p>
        {experiment.stopped
          ? `It stopped early after round ${experiment.round} of ${experiment.rounds}. It continues from there with new patience.`
          : `It has ${formatCounted(experiment.rounds, 'round')} now.`}
        {experiment.state === 'completed' && ' It runs again, starting from its last model.'}
      </p>
      <Field label="Rounds to add">
        <input name="rounds" type="number" min={1} step={1} defaultValue={experiment.rounds} required />
      </Field>
    </ActionDialog>
  )
}

interface CancelButtonProps {
  experiment: Experiment
}

function CancelButton({ experiment }: CancelButtonProps) {
  const cancel = useLifecycleAction(experiment.id, () => cancelExperiment(experiment))
  return (
    <ActionDialog
      label="Cancel"
      confirm="Cancel it"
      title={`Cancel “${experiment.name}”?`}
      dismiss="Keep it"
      danger
      pending={cancel.pending}
      problem={cancel.problem}
      onSubmit={() => cancel.run()}
    >
      <p>
        The open round ends without a result and no further round starts. Committed rounds and their checkpoints stay.
        This cannot be undone.
      </p>
    </ActionDialog>
  )
}

function DeleteButton({ experiment }: CancelButtonProps) {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const { run, pending, problem } = useAction(() => deleteExperiment(experiment), { changes: LISTS_KEY })
  const remove = async () => {
    if (!(await run())) return false
    await navigate({ to: '/' })
    queryClient.removeQueries({ queryKey: experimentKey(experiment.id) })
    return true
  }
  return (
    <ActionDialog
      label="Delete"
      title={`Delete “${experiment.name}”?`}
      dismiss="Keep it"
      danger
      pending={pending}
      problem={problem}
      onSubmit={remove}
    >
      <p>
        Its rounds, curves, ledger and checkpoints are deleted permanently. This cannot be undone. To hide the
        experiment instead, archive it.
      </p>
    </ActionDialog>
  )
}
