import { useQuery } from '@tanstack/react-query'

import { archiveExperiment, pauseExperiment, resumeExperiment, unarchiveExperiment } from '@/api/actions'
import { meQuery, onlyReads } from '@/api/people'
import { type Experiment, isFinished } from '@/api/types'
import { MoreMenu } from '@/lib/ui/more-menu'
import { ProblemNotice } from '@/lib/ui/problem-notice'

import { CloneButton } from './clone-button'
import { CancelButton, DeleteButton } from './ending-buttons'
import { ExtendButton } from './extend-button'
import { useAction } from './use-action'

interface Props {
  experiment: Experiment
}

/** What this user can do with the experiment in the state it is in. */
export function Actions({ experiment }: Props) {
  const reads = onlyReads(useQuery(meQuery).data)
  if (reads === undefined) return null
  return reads ? <OnlyReads /> : <ActionGroup experiment={experiment} />
}

function OnlyReads() {
  return (
    <p className="muted small" data-testid="only-reads">
      You look on as a viewer: a researcher can change this experiment.
    </p>
  )
}

/** One action stands out, the rare and the final ones are behind the dots; what is refused is said below all of them. */
function ActionGroup({ experiment }: Props) {
  const { state, archived_at: archived } = experiment
  const finished = isFinished(state)
  const pause = useAction(() => pauseExperiment(experiment))
  const resume = useAction(() => resumeExperiment(experiment))
  const shelve = useAction(() => (archived === null ? archiveExperiment(experiment) : unarchiveExperiment(experiment)))
  const problem = pause.problem ?? resume.problem ?? shelve.problem
  return (
    <div className="action-area">
      <div className="actions" role="group" aria-label="Actions">
        {state === 'running' && <MoveButton label="Pause" action={pause} primary />}
        {state === 'paused' && <MoveButton label="Resume" action={resume} primary />}
        {state === 'completed' && <ExtendButton experiment={experiment} primary />}
        <CloneButton experiment={experiment} primary={['queued', 'failed', 'cancelled'].includes(state)} />
        <MoreMenu label="More actions">
          {['running', 'paused'].includes(state) && <ExtendButton experiment={experiment} />}
          {finished && <MoveButton label={archived === null ? 'Archive' : 'Unarchive'} action={shelve} />}
          {finished ? <DeleteButton experiment={experiment} /> : <CancelButton experiment={experiment} />}
        </MoreMenu>
      </div>
      {problem && <ProblemNotice problem={problem} />}
    </div>
  )
}

interface MoveProps {
  label: string
  action: ReturnType<typeof useAction<void>>
  primary?: boolean
}

function MoveButton({ label, action, primary = false }: MoveProps) {
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
