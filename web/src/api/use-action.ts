import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'

import { dismissToast, toastFailure } from '@/lib/toasts'

import { toProblem } from './problem'

interface Options {
  /** What is fetched anew, whether the server did it or not. */
  changes: QueryKey
  /** What the toast calls it that tells of a failure; without, only `problem` does, for a dialog that is open anyway. */
  toasted?: string
}

/** Asks the server to do something. */
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
