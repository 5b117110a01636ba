import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { invitationsKey, invitationsQuery, invite, revokeInvitation } from '@/api/invitations'
import { toProblem } from '@/api/problem'
import { type Enrolment, type EnrolmentInfo, type Experiment, isFinished } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Command } from '@/lib/ui/copy-button'
import { Field } from '@/lib/ui/field'
import { MoreButton } from '@/lib/ui/more-button'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { RelativeTime, useNow } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

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
      {made && <Made code={made} />}
      {codes?.length === 0 && (
        <p className="muted">
          Nobody was invited yet. <code>ferret experiment enrol {id}</code> creates a code too.
        </p>
      )}
      {codes && codes.length > 0 && (
        <div className="table-scroll tall" tabIndex={0} role="region" aria-label="Invitations">
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

function Made({ code: { code, command } }: { code: Enrolment }) {
  return (
    <Notice title="Copy the code now: it is not shown again" testId="new-invitation">
      <Command text={code} label="code" />
      <p>The participant runs this command and then enters the code:</p>
      <Command text={command} label="command" />
    </Notice>
  )
}

const DAY_SECONDS = 24 * 3600

function InviteButton({ id, onMade }: { id: string; onMade: (code: Enrolment) => void }) {
  const create = useAction(
    async (form: FormData) => {
      onMade(await invite(id, wanted(form)))
    },
    { changes: invitationsKey(id) },
  )
  return (
    <ActionDialog
      label="Invite"
      confirm="Create a code"
      title="Invite a participant"
      dismiss="Close"
      pending={create.pending}
      problem={create.problem}
      onSubmit={create.run}
    >
      <p>One participant can join with the code, once. Send it over a channel that nobody else can read.</p>
      <Field label="Days until it expires">
        <input name="days" type="number" min={1} max={30} step={1} defaultValue={1} required />
      </Field>
      <Field label="Group" hint="Optional: a name for codes that belong together.">
        <input name="group" maxLength={100} />
      </Field>
      <label className="field-check">
        <input name="approval" type="checkbox" /> The participant must be approved here
      </label>
    </ActionDialog>
  )
}

function wanted(form: FormData) {
  const group = form.get('group')
  return {
    expires_seconds: Number(form.get('days')) * DAY_SECONDS,
    group: typeof group === 'string' && group.trim() !== '' ? group.trim() : null,
    approval: form.get('approval') === 'on',
  }
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
