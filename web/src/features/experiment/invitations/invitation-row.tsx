import { invitationsKey, revokeInvitation } from '@/api/invitations'
import type { EnrolmentInfo } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { RelativeTime } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'

export function InvitationRow({ experiment, code, now }: { experiment: string; code: EnrolmentInfo; now: number }) {
  const { id, group, approval, created_at: created, expires_at: expires, used_by: usedBy, refused } = code
  const state = invitationState(code, now)
  return (
    <tr data-testid="invitation-row">
      <th scope="row">
        <code>{id}</code>
        {group !== null && (
          <bdi dir="auto" className="muted small">
            {' '}
            {group}
          </bdi>
        )}
      </th>
      <td>
        <StateChip state={state} />
        {usedBy !== null && (
          <span className="muted small">
            {' by '}
            <bdi dir="auto">{usedBy}</bdi>
          </span>
        )}
        {refused > 0 && (
          <span className="row-warning">presented {refused} more times since: somebody else has the code too</span>
        )}
      </td>
      <td>{approval ? 'required' : 'not required'}</td>
      <td className="nowrap">
        <RelativeTime at={created} now={now} />
      </td>
      <td className="nowrap">{state === 'open' ? <RelativeTime at={expires} now={now} /> : '–'}</td>
      <td>{state === 'open' && <Revoke experiment={experiment} id={id} />}</td>
    </tr>
  )
}

function Revoke({ experiment, id }: { experiment: string; id: string }) {
  const revoke = useAction(() => revokeInvitation(experiment, id), { changes: invitationsKey(experiment) })
  return (
    <ActionDialog
      label="Revoke"
      title={`Revoke the code ${id}?`}
      dismiss="Keep it"
      danger
      pending={revoke.pending}
      problem={revoke.problem}
      onSubmit={() => revoke.run()}
    >
      <p>This code can no longer be used to join. This cannot be undone, but you can create a new code.</p>
    </ActionDialog>
  )
}

type InvitationState = 'open' | 'used' | 'revoked' | 'expired'

/** The state of a code. */
export function invitationState(code: EnrolmentInfo, now: number): InvitationState {
  if (code.used_at !== null) return 'used'
  if (code.revoked_at !== null) return 'revoked'
  return Date.parse(code.expires_at) <= now ? 'expired' : 'open'
}
