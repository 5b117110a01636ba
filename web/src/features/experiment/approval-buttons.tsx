import { approveParticipant, refuseParticipant } from '@/api/actions'
import type { Participant } from '@/api/types'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import { reasonOf, useDecision } from './use-decision'

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
        onSubmit={async (form) => (await refuse.run(reasonOf(form))) !== undefined}
      >
        <p>It takes no part in this experiment, and its place is free for another. This cannot be undone.</p>
        <Field label="Why: it is told this">
          <input name="reason" maxLength={500} />
        </Field>
      </ActionDialog>
    </span>
  )
}
