import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { invitationsKey, invitationsQuery, revokeInvitation } from '@/api/invitations'
import { toProblem } from '@/api/problem'
import { type Enrolment, type EnrolmentInfo, type Experiment, isFinished } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { RelativeTime, useNow } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'
import { formatCounted } from '@/lib/format'
import { TableHead } from '@/lib/ui/table-head'

import { InviteButton, NewCode } from './invite-button'

const COLUMNS = ['Code', 'State', 'Approval', 'Created', 'Expires', '']

/** Codes with which participants join, for researchers. */
export function InvitationsSection({ experiment: { id, state } }: { experiment: Experiment }) {
  const finished = isFinished(state)
  const list = useInfiniteQuery(invitationsQuery(id, !finished))
  const [made, setMade] = useState<Enrolment>()
  const now = useNow(10_000)
  const codes = list.data?.pages.flatMap((page) => page.items)
  return (
    <section aria-labelledby="invitations" data-testid="invitations">
      <header className="section-header">
        <h2 id="invitations">Invitations</h2>
        {!finished && <InviteButton id={id} onMade={setMade} />}
      </header>
      {list.error && <ProblemNotice problem={toProblem(list.error)} />}
      {made && <NewCode code={made} />}
      {codes?.length === 0 && (
        <p className="muted">
          Nobody has been invited yet. <code>ferret code create {id}</code> creates a code too.
        </p>
      )}
      {codes && codes.length > 0 && (
        <div className="table-scroll tall" tabIndex={0} role="group" aria-label="Invitations">
          <table>
            <TableHead columns={COLUMNS} />
            <tbody>
              {codes.map((code) => (
                <InvitationRow key={code.id} experiment={id} code={code} now={now} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <MoreButton list={list} />
    </section>
  )
}

function InvitationRow({ experiment, code, now }: { experiment: string; code: EnrolmentInfo; now: number }) {
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
          <span className="row-warning">
            presented {formatCounted(refused, 'more time')} since: somebody else has the code too
          </span>
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
