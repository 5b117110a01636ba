import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import {
  archiveExperiment,
  cancelExperiment,
  deleteExperiment,
  pauseExperiment,
  resumeExperiment,
  unarchiveExperiment,
} from '@/api/actions'
import { LISTS_KEY } from '@/api/experiment-list'
import { type ApiProblem, toProblem } from '@/api/problem'
import { experimentKey } from '@/api/queries'
import { isFinished, type ListedExperiment } from '@/api/types'
import type { Problem } from '@/lib/ui/notice'
import { dismissToast, toastFailure } from '@/lib/ui/toasts'

export interface BulkAction {
  label: string
  /** True if the experiment's state allows the action; the server decides. */
  fits: (experiment: ListedExperiment) => boolean
  run: (experiment: ListedExperiment) => Promise<unknown>
}

const finished = ({ state }: ListedExperiment) => isFinished(state)

/** Actions without a confirmation. */
export const MOVES: readonly BulkAction[] = [
  { label: 'Pause', fits: ({ state }) => state === 'running', run: pauseExperiment },
  { label: 'Resume', fits: ({ state }) => state === 'paused', run: resumeExperiment },
  { label: 'Archive', fits: (each) => finished(each) && each.archived_at === null, run: archiveExperiment },
  { label: 'Unarchive', fits: (each) => each.archived_at !== null, run: unarchiveExperiment },
]

/** Actions that need a confirmation. */
export const CANCEL: BulkAction = { label: 'Cancel', fits: (each) => !finished(each), run: cancelExperiment }
export const DELETE: BulkAction = { label: 'Delete', fits: finished, run: deleteExperiment }

interface Failure {
  experiment: ListedExperiment
  problem: ApiProblem
}

const AT_ONCE = 4

/** Runs the action for each experiment, some at a time, and returns the failures. */
export async function runForAll(experiments: readonly ListedExperiment[], run: BulkAction['run']): Promise<Failure[]> {
  const waiting = [...experiments]
  const failures: Failure[] = []
  const work = async () => {
    for (let experiment = waiting.shift(); experiment !== undefined; experiment = waiting.shift()) {
      const failed = experiment
      await run(failed).catch((error: unknown) => failures.push({ experiment: failed, problem: toProblem(error) }))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return failures
}

/** All failures as one problem: each experiment with its reason. */
export function togetherProblem(failures: readonly [Failure, ...Failure[]], total: number): Problem {
  const [{ problem }] = failures
  return {
    code: problem.code,
    title: total === 1 ? problem.title : `Failed for ${failures.length} of ${total}`,
    detail: '',
    requestId: problem.requestId,
    errors: failures.map((failure) => ({ field: failure.experiment.name, message: reason(failure.problem) })),
  }
}

function reason({ title, detail }: ApiProblem): string {
  return detail === '' ? title : detail
}

/** Runs an action for many experiments. One toast reports the failures, each with its reason. */
export function useBulk() {
  const queryClient = useQueryClient()
  const [running, setRunning] = useState<string>()
  const run = async (label: string, experiments: readonly ListedExperiment[], action: BulkAction['run']) => {
    setRunning(label)
    const [first, ...others] = await runForAll(experiments, action)
    setRunning(undefined)
    if (first) toastFailure(label, togetherProblem([first, ...others], experiments.length))
    else dismissToast(label)
    for (const { id } of experiments) void queryClient.invalidateQueries({ queryKey: experimentKey(id) })
    await queryClient.invalidateQueries({ queryKey: LISTS_KEY })
  }
  return { running, run }
}
