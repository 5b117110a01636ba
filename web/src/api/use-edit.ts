import { useQueryClient } from '@tanstack/react-query'

import { dismissToast, toastFailure } from '@/lib/toasts'

import { editExperiment, type ReadExperiment } from './experiment-edit'
import { LISTS_KEY } from './experiment-list'
import { ApiProblem, toProblem } from './problem'
import { experimentKey, experimentQuery } from './queries'
import type { Experiment, ExperimentChange } from './types'

type Editable = Pick<Experiment, 'name' | 'tags' | 'notes' | 'priority'>

/**
 * Edits an experiment that was `read` when the editing began, and that the reader had seen as `seen`. What fails is
 * told in a toast that names the action; whatever happens, the page then shows the experiment as it is.
 */
export function useEdit(id: string) {
  const queryClient = useQueryClient()
  return async (
    action: string,
    change: ExperimentChange,
    read: Promise<ReadExperiment>,
    seen: Partial<Editable>,
  ): Promise<boolean> => {
    try {
      const { experiment, etag } = await read
      requireSame(experiment, seen)
      queryClient.setQueryData(experimentQuery(id).queryKey, await editExperiment(id, change, etag))
      dismissToast(action)
      return true
    } catch (error) {
      toastFailure(action, toProblem(error))
      return false
    } finally {
      void queryClient.invalidateQueries({ queryKey: experimentKey(id) })
      void queryClient.invalidateQueries({ queryKey: LISTS_KEY })
    }
  }
}

/** Throws what the server says of an edit that is late, where the reader had seen what is past. */
export function requireSame(now: Editable, seen: Partial<Editable>): void {
  const parts = ['name', 'tags', 'notes', 'priority'] as const
  if (parts.every((part) => seen[part] === undefined || String(seen[part]) === String(now[part]))) return
  const title = 'The experiment was edited by somebody else in the meantime'
  throw new ApiProblem({ code: 'experiment.changed', title }, 412)
}
