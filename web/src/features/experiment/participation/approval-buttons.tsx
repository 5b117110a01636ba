import { approveParticipant, refuseParticipant } from '@/api/actions'
import { experimentKey } from '@/api/queries'
import type { Participant } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import { reasonOf } from './reason'

/** Lets a participant in that waits for it, or refuses it for good. */
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
        <p>It takes no part in this experiment, and its place is free for another. This cannot be undone.</p>
        <Field label="Why: it is told this">
          <input name="reason" maxLength={500} />
        </Field>
      </ActionDialog>
    </span>
  )
}
