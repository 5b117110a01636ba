import { approveParticipant, refuseParticipant, revokeParticipant } from '@/api/actions'
import { experimentKey } from '@/api/queries'
import type { Participant } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

/** Approves or refuses a participant that waits for approval. */
export function ApprovalButtons({ id, participant }: { id: string; participant: Participant }) {
  const changes = experimentKey(id)
  const toasted = `Approving ${participant.display_name}`
  const approve = useAction(() => approveParticipant(id, participant), { changes, toasted })
  const refuse = useAction((form: FormData) => refuseParticipant(id, participant, reasonOf(form)), { changes })
  return (
    <span className="approval">
      <button type="button" className="button primary" disabled={approve.pending} onClick={() => void approve.run()}>
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
        onSubmit={refuse.run}
      >
        <p>The participant does not take part, and its place is free for another one. This cannot be undone.</p>
        <Field label="Reason, shown to the participant">
          <input name="reason" maxLength={500} />
        </Field>
      </ActionDialog>
    </span>
  )
}

/** Revokes a participant that takes part. */
export function RevokeButton({ id, participant }: { id: string; participant: Participant }) {
  const revoke = useAction((form: FormData) => revokeParticipant(id, participant, reasonOf(form)), {
    changes: experimentKey(id),
  })
  return (
    <ActionDialog
      label="Revoke"
      confirm="Revoke it"
      title={`Revoke “${participant.display_name}”?`}
      dismiss="Keep it"
      danger
      pending={revoke.pending}
      problem={revoke.problem}
      onSubmit={revoke.run}
    >
      <p>
        Its next request is refused, and rounds continue without it. Accepted contributions stay. This cannot be undone.
      </p>
      <Field label="Reason, shown to the participant">
        <input name="reason" maxLength={500} />
      </Field>
    </ActionDialog>
  )
}

/** The reason in a form; null if it is empty. */
function reasonOf(form: FormData): string | null {
  const text = form.get('reason')
  return typeof text === 'string' && text.trim() !== '' ? text : null
}
