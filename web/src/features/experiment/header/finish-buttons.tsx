import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'

import { cancelExperiment, deleteExperiment } from '@/api/actions'
import { type ApiProblem, toProblem } from '@/api/problem'
import { experimentKey } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { useLifecycleAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'

interface Props {
  experiment: Experiment
}

export function CancelButton({ experiment }: Props) {
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

export function DeleteButton({ experiment }: Props) {
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
        Its rounds, curves, ledger and checkpoints are deleted permanently. This cannot be undone. To hide the
        experiment instead, archive it.
      </p>
    </ActionDialog>
  )
}
