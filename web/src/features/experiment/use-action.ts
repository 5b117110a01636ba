import { useMutation, useQueryClient } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { experimentKey, experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'

/** Asks the server to move the experiment; the page then shows it as the server answered. */
export function useAction<T = void>(action: (input: T) => Promise<Experiment>) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: action,
    onSuccess: (experiment) => {
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
