import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'

import {
  archiveExperiment,
  cancelExperiment,
  deleteExperiment,
  pauseExperiment,
  resumeExperiment,
  unarchiveExperiment,
} from '@/api/actions'
import { meQuery, onlyReads } from '@/api/people'
import { type ApiProblem, toProblem } from '@/api/problem'
import { experimentKey } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { ActionDialog } from '@/lib/ui/action-dialog'

import { CloneButton } from './clone-button'
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

function ActionGroup({ experiment }: Props) {
  const { state, archived_at: archived } = experiment
  const finished = isFinished(state)
  return (
    <div className="actions" role="group" aria-label="Actions">
      {state === 'running' && <MoveButton label="Pause" move={() => pauseExperiment(experiment)} />}
      {state === 'paused' && <MoveButton label="Resume" move={() => resumeExperiment(experiment)} />}
      {['running', 'paused', 'completed'].includes(state) && <ExtendButton experiment={experiment} />}
      <CloneButton experiment={experiment} />
      {finished && archived === null && <MoveButton label="Archive" move={() => archiveExperiment(experiment)} />}
      {finished && archived !== null && <MoveButton label="Unarchive" move={() => unarchiveExperiment(experiment)} />}
      {finished ? <DeleteButton experiment={experiment} /> : <CancelButton experiment={experiment} />}
    </div>
  )
}

function MoveButton({ label, move }: { label: string; move: () => Promise<Experiment> }) {
  const action = useAction(move, label)
  return (
    <button type="button" className="button" disabled={action.pending} onClick={() => void action.run()}>
      {label}
    </button>
  )
}

function CancelButton({ experiment }: Props) {
  const cancel = useAction(() => cancelExperiment(experiment))
  return (
    <ActionDialog
      label="Cancel"
      confirm="Cancel it"
      title={`Cancel “${experiment.name}”?`}
      dismiss="Keep it"
      danger
      pending={cancel.pending}
      problem={cancel.problem}
      onSubmit={async () => (await cancel.run()) !== undefined}
    >
      <p>
        The open round ends without a result and no further round starts. Committed rounds and their checkpoints stay.
        This cannot be undone.
      </p>
    </ActionDialog>
  )
}

function DeleteButton({ experiment }: Props) {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [problem, setProblem] = useState<ApiProblem>()
  const remove = async () => {
    try {
      await deleteExperiment(experiment)
    } catch (error) {
      setProblem(toProblem(error))
      return false
    }
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
      pending={false}
      problem={problem}
      onSubmit={remove}
    >
      <p>
        Its rounds, curves, ledger and checkpoints are gone for good. To keep them out of sight only, archive it. This
        cannot be undone.
      </p>
    </ActionDialog>
  )
}
