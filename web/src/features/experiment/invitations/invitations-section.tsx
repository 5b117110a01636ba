import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { invitationsQuery } from '@/api/invitations'
import { toProblem } from '@/api/problem'
import { type Enrolment, type Experiment, isFinished } from '@/api/types'
import { Command } from '@/lib/ui/copy-button'
import { MoreButton } from '@/lib/ui/more-button'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { TableHead } from '@/lib/ui/table-head'

import { InvitationRow } from './invitation-row'
import { InviteButton } from './invite-button'

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
