import { useMutation, useQueryClient } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { experimentKey } from '@/api/queries'
import type { Participant } from '@/api/types'
import { dismissToast, toastFailure } from '@/lib/toasts'

/**
 * Decides about a participant. A failure is told in a toast that names the decision `toasted`; without, in `problem`,
 * for a dialog.
 */
export function useDecision(id: string, decide: (reason: string | null) => Promise<Participant>, toasted?: string) {
  const queryClient = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: decide,
    onError: (failure) => {
      if (toasted !== undefined) toastFailure(toasted, toProblem(failure))
    },
    onSuccess: () => {
      if (toasted !== undefined) dismissToast(toasted)
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: experimentKey(id) }),
  })
  return {
    /** The participant as it then is; undefined when the server refused, which `problem` tells. */
    run: (reason: string | null) => mutateAsync(reason).catch(() => undefined),
    pending: isPending,
    problem: error ? toProblem(error) : undefined,
  }
}

/** What a form says in `reason`, null if nothing. */
export function reasonOf(form: FormData): string | null {
  const text = form.get('reason')
  return typeof text === 'string' && text.trim() !== '' ? text : null
}
