import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'

import { dismissToast, toastFailure } from '@/lib/ui/toasts'

import { toProblem } from './problem'

interface Options {
  /** The query that is refetched after the action, successful or not. */
  changes: QueryKey
  /** The action's name in the toast that reports a failure. Without it only `problem` does, for a dialog that is open. */
  toasted?: string
}

/** Runs an action on the server. */
export function useAction<In = void>(action: (input: In) => Promise<unknown>, { changes, toasted }: Options) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: action,
    onError: (failure) => {
      if (toasted !== undefined) toastFailure(toasted, toProblem(failure))
    },
    onSuccess: () => {
      if (toasted !== undefined) dismissToast(toasted)
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: changes }),
  })
  return {
    /** Resolves to true if the action succeeded. */
    run: (input: In) =>
      mutateAsync(input).then(
        () => true,
        () => false,
      ),
    pending: isPending,
    problem: error ? toProblem(error) : undefined,
  }
}
