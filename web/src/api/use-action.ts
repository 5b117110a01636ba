import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'

import { dismissToast, toastFailure } from '@/lib/ui/toasts'

import { toProblem } from './problem'
import { experimentKey, experimentQuery } from './queries'
import type { Experiment } from './types'

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

/** Changes an experiment and shows the server's answer. {@link useAction} reports a failure. */
export function useLifecycleAction<In = void>(id: string, move: (input: In) => Promise<Experiment>, toasted?: string) {
  const queryClient = useQueryClient()
  const options = { changes: experimentKey(id), ...(toasted !== undefined && { toasted }) }
  return useAction(async (input: In) => {
    queryClient.setQueryData(experimentQuery(id).queryKey, await move(input))
  }, options)
}
