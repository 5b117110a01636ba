import { useMutation, useQueryClient } from '@tanstack/react-query'

import { approveParticipant, refuseParticipant } from '@/api/actions'
import { toProblem } from '@/api/problem'
import { experimentKey } from '@/api/queries'
import type { Participant } from '@/api/types'
import { dismissToast, toastFailure } from '@/lib/toasts'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

/** Lets a participant in that waits for it, or refuses it for good. */
export function ApprovalButtons({ id, participant }: { id: string; participant: Participant }) {
  const approve = useDecision(id, () => approveParticipant(id, participant), `Approving ${participant.display_name}`)
  const refuse = useDecision(id, (reason: string | null) => refuseParticipant(id, participant, reason))
  return (
    <span className="approval">
      <button
        type="button"
        className="button primary"
        disabled={approve.pending}
        onClick={() => void approve.run(null)}
      >
        Approve
      </button>
      <ActionDialog
        label="Refuse"
        confirm="Refuse it"
        title={`Refuse “${participant.display_name}”?`}
        dismiss="Not now"
        danger
        pending={refuse.pending}
        problem={refuse.problem}
        onSubmit={async (form) => (await refuse.run(textOf(form, 'reason'))) !== undefined}
      >
        <p>It takes no part in this experiment, and its place is free for another. This cannot be undone.</p>
        <Field label="Why: it is told this">
          <input name="reason" maxLength={500} />
        </Field>
      </ActionDialog>
    </span>
  )
}

/** A failure is told in a toast that names the decision `toasted`; without, in `problem`, for a dialog. */
function useDecision(id: string, decide: (reason: string | null) => Promise<Participant>, toasted?: string) {
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

function textOf(form: FormData, name: string): string | null {
  const text = form.get(name)
  return typeof text === 'string' && text.trim() !== '' ? text : null
}
