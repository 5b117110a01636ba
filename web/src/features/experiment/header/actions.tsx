import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { meQuery, onlyReads } from '@/api/account'
import { archiveExperiment, pauseExperiment, resumeExperiment, unarchiveExperiment } from '@/api/actions'
import { type Experiment, isFinished } from '@/api/types'
import { useLifecycleAction } from '@/api/use-action'
import { MoreMenu } from '@/lib/ui/more-menu'

import { ExtendButton } from './extend-button'
import { CancelButton, DeleteButton } from './finish-buttons'

interface Props {
  experiment: Experiment
}

/** The actions that this user can take in the experiment's state. */
export function Actions({ experiment }: Props) {
  const reads = onlyReads(useQuery(meQuery).data)
  if (reads === undefined) return null
  return reads ? <OnlyReads /> : <ActionGroup experiment={experiment} />
}

function OnlyReads() {
  return (
    <p className="muted small" data-testid="only-reads">
      You are a viewer: a researcher can change this experiment.
    </p>
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
