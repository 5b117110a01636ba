import { useMutation, useQueryClient } from '@tanstack/react-query'

import { invitationsQuery } from '@/api/invitations'
import { toProblem } from '@/api/problem'

/** Changes something about an experiment's codes; what fails is told in `problem`, for a dialog. */
export function useInvitationAction<In>(id: string, action: (input: In) => Promise<unknown>) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: action,
    onSettled: () => queryClient.invalidateQueries({ queryKey: invitationsQuery(id, false).queryKey }),
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
