import { useMutation, useQueryClient } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { experimentKey, experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { dismissToast, toastFailure } from '@/lib/toasts'

/**
 * Asks the server to move the experiment; the page then shows it as the server answered. What fails is told in a toast
 * that names the action `toasted`; without, in `problem`, for a dialog that is open anyway.
 */
export function useAction<T = void>(action: (input: T) => Promise<Experiment>, toasted?: string) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: action,
    onError: (failure) => {
      if (toasted !== undefined) toastFailure(toasted, toProblem(failure))
    },
    onSuccess: (experiment) => {
      if (toasted !== undefined) dismissToast(toasted)
      queryClient.setQueryData(experimentQuery(experiment.id).queryKey, experiment)
      void queryClient.invalidateQueries({ queryKey: experimentKey(experiment.id) })
    },
  })
  return {
    /** The experiment as it then is; undefined when the server refused, which `problem` tells. */
    run: (input: T) => mutateAsync(input).catch(() => undefined),
    pending: isPending,
    problem: error ? toProblem(error) : undefined,
  }
}
