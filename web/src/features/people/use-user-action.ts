import { useMutation, useQueryClient } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { usersQuery } from '@/api/users'
import { dismissToast, toastFailure } from '@/lib/toasts'

/** Changes something about users. What fails is told in a toast named `toasted`; without, in `problem`, for a dialog. */
export function useUserAction<In>(action: (input: In) => Promise<unknown>, toasted?: string) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: action,
    onError: (failure) => {
      if (toasted !== undefined) toastFailure(toasted, toProblem(failure))
    },
    onSuccess: () => {
      if (toasted !== undefined) dismissToast(toasted)
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: usersQuery.queryKey }),
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
