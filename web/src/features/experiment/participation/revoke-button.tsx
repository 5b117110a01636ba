import { revokeParticipant } from '@/api/actions'
import { experimentKey } from '@/api/queries'
import type { Participant } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

import { reasonOf } from './reason'

/** Takes a participant out that was let in. */
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
        Its next request is refused, and rounds go on without it. What was accepted from it stays. This cannot be
        undone.
      </p>
      <Field label="Why: it is told this">
        <input name="reason" maxLength={500} />
      </Field>
    </ActionDialog>
  )
}
