import { useMutation, useQueryClient } from '@tanstack/react-query'

import { alertsQuery } from '@/api/alerts'
import { toProblem } from '@/api/problem'
import { dismissToast, toastFailure } from '@/lib/toasts'

/**
 * Changes something about a project's alerts, and has them fetched anew. What fails is told in a toast that names the
 * action `toasted`; without, in `problem`, for a dialog that is open anyway.
 */
export function useAlertAction<In, Out>(project: string, action: (input: In) => Promise<Out>, toasted?: string) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: action,
    onError: (failure) => {
      if (toasted !== undefined) toastFailure(toasted, toProblem(failure))
    },
    onSuccess: () => {
      if (toasted !== undefined) dismissToast(toasted)
    },
    onSettled: () => queryClient.invalidateQueries(alertsQuery(project)),
  })
  return {
    /** Whether the server did it. */
    run: (input: In) =>
      mutateAsync(input).then(
        () => true,
        () => false,
      ),
    pending: isPending,
    problem: error ? toProblem(error) : undefined,
  }
}
